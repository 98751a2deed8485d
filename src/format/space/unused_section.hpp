// The unused section of the space map, as one transaction changes it: free ranges, and freed
// ranges, which the generation does not use but older generations may still read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "format/bytes/generation_set.hpp"
#include "format/pages/tree.hpp"
#include "format/space/free_ranges.hpp"
#include "format/space/space_record.hpp"

namespace shale::format {

/// Threads  one at a time
class unused_section {
 public:
  /// Reads the section from the map's tree, for a file that ends at `end_of_file`. Freed ranges
  /// whose life holds no protected generation become free (space.2).
  /// Throws   corrupt, io
  unused_section(const tree& map_tree, std::uint64_t end_of_file,
                 generation_set protected_generations);

  /// Goes on with the section as the last transaction has left it: freed ranges whose life holds no
  /// protected generation any more become free.
  /// Cost     O(freed ranges), and O(log n) for each that becomes free
  void protect(generation_set protected_generations);

  free_ranges& free_space() noexcept { return free_; }
  const free_ranges& free_space() const noexcept { return free_; }

  /// The number of free and freed ranges.
  std::size_t range_count() const noexcept { return free_.ranges().size() + freed_.size(); }

  /// The number of entries that all objects of the process have read so far. It measures the cost of
  /// making them.
  static std::uint64_t entries_read() noexcept { return entries_read_; }

  /// Adds a range that is used by the generations from `born` to the one before `freed`. It is
  /// joined with freed ranges of the same life that touch it.
  void add_freed(std::uint64_t first, std::uint64_t end, std::uint64_t born, std::uint64_t freed);

  /// Makes the tree agree with the free and freed ranges, at all offsets that have changed since
  /// the last call. Returns whether anything was changed there.
  /// Throws   corrupt, io
  bool enter_into(tree& map_tree);

 private:
  static inline std::atomic<std::uint64_t> entries_read_ = 0;

  generation_set protected_;
  free_ranges free_;
  std::map<std::uint64_t, space_entry> freed_;
  std::set<std::uint64_t> touched_;  // offsets whose entry may differ from the tree's
};

}  // namespace shale::format
