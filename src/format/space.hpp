// Who owns which bytes of the file: the space map, and the allocator over it.
//
// The map is a tree of the container itself with two sections: live ranges, each with the
// generation that it was born in, and unused ranges, each with its life [born, freed) while an
// older generation may still be read, or free.
//
// Invariants
//   space.1  live, freed and free ranges cover the file behind its fixed pages exactly once
//   space.2  a range is taken again only if its life [born, freed) holds no protected generation:
//            none that is pinned, retained, or in a valid superblock (commit.2)
//   space.3  only whole pages are taken: bytes of two generations never share one, except free ones
//   space.4  what a transaction allocated and released itself is free at once: nobody saw it
//   space.5  the map accounts for the pages of its own tree
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "format/range_set.hpp"
#include "format/tree.hpp"
#include "format/types.hpp"

namespace shale::format {

/// What the map says of a range; the key holds its section and offset.
struct space_entry {
  std::uint64_t bytes = 0;
  std::uint64_t born = 0;   ///< first generation that used it; 0 if free
  std::uint64_t freed = 0;  ///< first generation that does not; 0 if free; `never` if live

  static constexpr std::uint64_t never = UINT64_MAX;

  bool is_free() const noexcept { return born == 0 && freed == 0; }
  friend bool operator==(const space_entry&, const space_entry&) noexcept = default;
};

/// The two sections of the map: the first byte of its keys.
enum class space_section : std::uint8_t { live = 1, unused = 2 };

std::string space_key(space_section section, std::uint64_t offset);

/// A key and a value of the map, read back.
struct space_record {
  space_section section;
  std::uint64_t offset = 0;
  space_entry entry;
};

/// Returns  nothing if the pair cannot be a record of a file that ends at `end_of_file`
std::optional<space_record> decode_space_record(std::string_view key, bytes_view value,
                                                std::uint64_t end_of_file) noexcept;

/// Bytes that a chunk of that many stored bytes takes up.
constexpr std::uint64_t chunk_space(std::uint64_t stored_bytes) noexcept {
  return (stored_bytes + chunk_alignment - 1) / chunk_alignment * chunk_alignment;
}

/// Bytes that anything else takes up.
constexpr std::uint64_t page_space(std::uint64_t bytes) noexcept {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/// Whether the life [born, freed) holds one of the generations.
bool lives_in(std::uint64_t born, std::uint64_t freed,
              const std::vector<generation_range>& generations) noexcept;

/// Free ranges, found by place and by size, with a note of which of them changed.
class free_ranges {
 public:
  /// A range that is free from now on. Joins its neighbours.
  void add(std::uint64_t first, std::uint64_t end);

  /// Takes a range that lies inside a free one.
  void take(std::uint64_t first, std::uint64_t end);

  /// The start of the smallest range that holds `bytes` (whole pages) at that alignment.
  std::optional<std::uint64_t> find(std::uint64_t bytes, std::uint64_t alignment) const;

  /// The free range that ends exactly there.
  std::optional<std::uint64_t> ending_at(std::uint64_t end) const;

  /// Whole pages of the largest range: its first page and one past its last.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> largest() const;

  /// Bytes in whole pages.
  std::uint64_t page_total() const noexcept { return page_total_; }

  /// first -> one past the last.
  const std::map<std::uint64_t, std::uint64_t>& ranges() const noexcept { return ranges_; }

  /// Offsets at which a range began or begins since the last call.
  std::set<std::uint64_t> take_touched() { return std::exchange(touched_, {}); }

 private:
  using map = std::map<std::uint64_t, std::uint64_t>;
  void insert(std::uint64_t first, std::uint64_t end);
  void remove(map::iterator at);

  map ranges_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_pages_;  // {bytes in whole pages, offset}
  std::set<std::uint64_t> touched_;
  std::uint64_t page_total_ = 0;
};

/// The books of one transaction.
class space_map {
 public:
  /// `books` is the map's tree as of the base generation, whose file ends at `end_of_file`; its
  /// sink must pass releases on to `release` here. Reads the unused section.
  /// Throws   corrupt, io
  space_map(tree& books, std::uint64_t generation, std::uint64_t end_of_file,
            std::vector<generation_range> protected_generations);

  /// Where the new generation's file ends.
  std::uint64_t end_of_file() const noexcept { return end_; }

  /// Whole pages for `bytes`; `alignment` is a multiple of 4 KiB.
  /// Throws   out_of_space (beyond what a file can address)
  extent allocate(std::uint64_t bytes, std::uint64_t alignment);

  /// Space for a chunk, next to the last one.
  extent allocate_chunk(std::uint64_t stored_bytes);

  /// Single pages, together if possible.
  std::vector<std::uint64_t> allocate_pages(std::size_t count);

  /// The generation being made does not use the range (offset and length as allocated).
  /// Throws   corrupt if it was released before
  void release(std::uint64_t offset, std::uint64_t bytes);

  /// `got` was allocated last, when the file ended at `end_before`, and turned out to have no
  /// bytes: as if it had never been asked for.
  void withdraw(const extent& got, std::uint64_t end_before);

  /// Whether this transaction allocated all of the range and still has it.
  bool allocated_here(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return allocated_.contains(offset, offset + bytes);
  }

  /// Enters everything into the map until nothing changes any more: entering changes pages of the
  /// map's tree, which takes and gives space (space.5). Afterwards every changed page of the tree
  /// has its place, and nothing may be allocated or released.
  /// Throws   corrupt (a released range is not live in the map), io
  void settle();

 private:
  bool enter_released();
  bool enter_allocated();
  bool enter_unused();
  bool place_pages(bool at_end);
  void add_freed(std::uint64_t first, std::uint64_t end, std::uint64_t born);
  void close_chunks();
  extent grow(std::uint64_t bytes, std::uint64_t alignment);

  tree* books_;
  std::uint64_t generation_;
  std::uint64_t end_;
  std::vector<generation_range> protected_;
  free_ranges free_;
  std::map<std::uint64_t, space_entry> freed_;  // unused, but some older generation may be read
  std::set<std::uint64_t> touched_;  // offsets whose unused entry may differ from the tree's
  range_set allocated_;              // by this transaction
  range_set entered_;                // of those, what the tree already says
  range_set released_;               // of the base generation, not yet entered
  std::uint64_t chunks_at_ = 0;      // where the next chunk goes, up to chunks_end_
  std::uint64_t chunks_end_ = 0;
};

}  // namespace shale::format
