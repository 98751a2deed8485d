// Allocates space in the file, and records it in the space map. A `space_map` is the map as one
// transaction changes it.
//
// The map is a tree of the container itself. It has two sections:
//
//   live    ranges that the generation uses, each with the generation `born` that first used it
//   unused  free ranges, and freed ranges: used by the generations of their life [born, freed) only
//
// A transaction may reuse a freed range once no protected generation lies in its life (space.2). At
// its beginning it reads the unused section, or has it from the transaction before
// (remembered_space), and turns such ranges into free ones. During the transaction, changes are
// kept in memory: allocated ranges, released ranges, and the offsets that differ from the tree.
// `write_changes` writes them into the tree at the end. The live section, which may be long, is
// read only at the ranges that are released.
//
// Invariants
//   space.1  live, freed and free ranges cover the file after its fixed pages exactly once
//   space.2  a range is taken again only if its life [born, freed) holds no protected generation:
//            none that is pinned, retained, or in a valid superblock (commit.2)
//   space.3  only whole free pages are taken, so all bytes of a page that are in use were first
//            used by the same generation
//   space.4  a range that the transaction allocated and then released is free at once, because no
//            other generation refers to it
//   space.5  the map accounts for the pages of its own tree
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "format/bytes/generation_set.hpp"
#include "format/bytes/range_set.hpp"
#include "format/bytes/types.hpp"
#include "format/pages/tree.hpp"
#include "format/space/unused_section.hpp"

namespace shale::format {

/// The changes that one transaction makes to the map.
class space_map {
 public:
  /// `map_tree` is the map's tree as of the base generation, whose file ends at `end_of_file`; its
  /// sink must pass releases on to `release` here. `remembered` is the map's unused section, if it
  /// is known; otherwise it is read.
  /// Throws   corrupt (also an end that is no multiple of 64 bytes), io
  space_map(tree& map_tree, std::uint64_t generation, std::uint64_t end_of_file,
            generation_set protected_generations,
            std::optional<unused_section> remembered = std::nullopt);

  /// The end of the new generation's file.
  std::uint64_t end_of_file() const noexcept { return end_; }

  /// Whole pages for `bytes`; `alignment` is a power of two, at least 4 KiB.
  /// Throws   out_of_space (beyond what a file can address)
  extent allocate(std::uint64_t bytes, std::uint64_t alignment);

  /// Space for a chunk, next to the last one.
  extent allocate_chunk(std::uint64_t stored_bytes);

  /// Single pages. They lie side by side, and behind those of the call before, if there is space.
  std::vector<std::uint64_t> allocate_pages(std::size_t count);

  /// Gives back a range that the generation being made does not use. `bytes` is its length in the
  /// file: page_space() of an extent's length, chunk_space() of a chunk's stored bytes.
  /// Throws   corrupt if it was released before
  void release(std::uint64_t offset, std::uint64_t bytes);

  /// Undoes the latest allocation if the device has no space for it. `got` is its range in whole
  /// pages; `end_before` is the end of the file before it.
  void withdraw(const extent& got, std::uint64_t end_before);

  /// The ranges that came from free space or from the end of the file since the last call. Nothing
  /// of this transaction was written there before the call.
  range_set take_fresh() noexcept { return std::exchange(fresh_, {}); }

  /// The next `take_fresh` returns these ranges again.
  void put_fresh_back(const range_set& ranges) {
    for (const auto& [first, end] : ranges.ranges()) fresh_.unite(first, end);
  }

  /// How often a range came from free space or from the end of the file so far. While the number
  /// stays, nothing of this transaction is written over a range that it has released.
  std::uint64_t times_taken() const noexcept { return times_taken_; }

  /// Whether this transaction allocated all of the range and still has it.
  bool allocated_here(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return allocated_.contains(offset, offset + bytes);
  }

  /// Enters all changes into the map's tree. Each entry may change pages of that tree, and so
  /// allocate and release space itself (space.5); this is repeated until nothing changes any more.
  /// Afterwards every changed page of the tree has its place, and nothing may be allocated or
  /// released.
  /// Throws   corrupt (a released range is not live in the map), io
  void write_changes();

  /// The unused section as `write_changes` has left it, for the next transaction. Nothing else may
  /// be called afterwards.
  unused_section&& take_unused() noexcept { return std::move(unused_); }

 private:
  bool enter_released();
  bool enter_allocated();
  bool place_pages(bool at_end);
  void note_taken(std::uint64_t first, std::uint64_t end);
  std::optional<std::uint64_t> place_for_run(std::uint64_t bytes) const;
  void close_chunks();
  extent take(std::uint64_t space, std::uint64_t alignment);
  extent grow(std::uint64_t bytes, std::uint64_t alignment);
  extent grow_from(std::uint64_t tail, std::uint64_t bytes, std::uint64_t alignment);

  tree* map_tree_;
  std::uint64_t generation_;
  std::uint64_t end_;
  unused_section unused_;
  range_set allocated_;  // by this transaction
  range_set fresh_;      // see take_fresh; may be free again
  std::uint64_t times_taken_ = 0;
  range_set entered_;            // the part of `allocated_` that is in the tree
  range_set released_;           // of the base generation, not yet entered in the tree
  std::uint64_t chunks_at_ = 0;  // where the next chunk goes, up to chunks_end_
  std::uint64_t chunks_end_ = 0;
  std::uint64_t next_page_ = 0;  // behind the last page that was allocated
};

}  // namespace shale::format
