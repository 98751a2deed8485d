// Finds free blocks by size. Blocks are segregated into bins, 32 per doubling: a bin up to half a
// MiB holds one size, and the sizes in a larger bin differ by at most a 32nd. Two levels of bitmaps
// find the next bin that is not empty. So finding a good fit, which is nearly the best fit, costs
// the same for any number of free blocks.
// Source   Masmano, Ripoll, Crespo, Real: TLSF, a new dynamic memory allocator for real-time
//          systems (ECRTS 2004)
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "storage/pool/heap/block.hpp"

namespace shale::detail {

class size_bins {
 public:
  /// The largest size of a block: more than any address space.
  static constexpr std::size_t bytes_max = std::size_t{1} << 52;

  /// Adds a free block. Among blocks of one size, the one that was inserted last is found first.
  void insert(pool_block& idle) noexcept {
    const bin into = bin_of(idle.bytes);
    pool_block*& head = heads_[into.level][into.place];
    idle.bin_before = nullptr;
    idle.bin_after = head;
    if (head != nullptr) head->bin_before = &idle;
    head = &idle;
    levels_ |= std::uint64_t{1} << into.level;
    places_[into.level] |= std::uint32_t{1} << into.place;
  }

  /// Removes a block, which must still have the size that it was inserted with.
  void erase(pool_block& idle) noexcept {
    if (idle.bin_after != nullptr) idle.bin_after->bin_before = idle.bin_before;
    if (idle.bin_before != nullptr) {
      idle.bin_before->bin_after = idle.bin_after;
      return;
    }
    const bin used = bin_of(idle.bytes);
    assert(heads_[used.level][used.place] == &idle);
    heads_[used.level][used.place] = idle.bin_after;
    if (idle.bin_after != nullptr) return;
    places_[used.level] &= ~(std::uint32_t{1} << used.place);
    if (places_[used.level] == 0) levels_ &= ~(std::uint64_t{1} << used.level);
  }

  /// The smallest block of at least `bytes` for which `fits` returns true, among the blocks that
  /// are examined; null if there is none. A block is found if `fits` is true of all blocks and a
  /// bin of larger sizes has one.
  /// Cost     O(1)
  template <class Fits>
  pool_block* good_fit(std::size_t bytes, Fits fits) const noexcept {
    // The first bin may hold blocks that are smaller than `bytes`, and any block may fail `fits`.
    // So a bin is searched for at most 8 blocks, and all bins together for about 16. In a bin with
    // one size the first block that fits is the best.
    int looks = looks_max;
    for (bin current = next_used(bin_of(bytes)); current.level < levels;
         current = next_used(current.next())) {
      pool_block* best = nullptr;
      int looks_here = looks_max_bin;
      for (pool_block* candidate = heads_[current.level][current.place]; candidate != nullptr;
           candidate = candidate->bin_after) {
        if (candidate->bytes >= bytes && (best == nullptr || candidate->bytes < best->bytes) &&
            fits(*candidate)) {
          best = candidate;
          if (current.has_one_size() || candidate->bytes == bytes) return best;
        }
        --looks;
        if (--looks_here == 0) break;
      }
      if (best != nullptr || looks <= 0) return best;
    }
    return nullptr;
  }

  /// Visits the blocks, smaller bins first, until a visit returns true. Returns whether one did. A
  /// visit may erase its block.
  template <class Visit>
  bool any_of(Visit visit) const {
    for (bin current = next_used({0, 0}); current.level < levels;
         current = next_used(current.next()))
      for (pool_block* following = heads_[current.level][current.place]; following != nullptr;) {
        pool_block& visited = *following;
        following = following->bin_after;
        if (visit(visited)) return true;
      }
    return false;
  }

  /// Visits each block; a visit may erase it.
  template <class Visit>
  void for_each(Visit visit) const {
    any_of([&visit](pool_block& block) {
      visit(block);
      return false;
    });
  }

  /// The size of the largest block; 0 if there is none.
  std::size_t largest_bytes() const noexcept {
    if (levels_ == 0) return 0;
    const auto level = static_cast<std::size_t>(std::bit_width(levels_)) - 1;
    const auto place = static_cast<std::size_t>(std::bit_width(places_[level])) - 1;
    std::size_t most = 0;
    for (const pool_block* block = heads_[level][place]; block != nullptr; block = block->bin_after)
      most = std::max(most, block->bytes);
    return most;
  }

 private:
  static constexpr unsigned places_log2 = 5;
  static constexpr unsigned places = 1u << places_log2;  // bins per doubling
  static constexpr unsigned levels = 36;                 // doublings up to bytes_max
  static constexpr int looks_max_bin = 8;
  static constexpr int looks_max = 16;

  // In the first two levels, bins are one granule apart; each further level doubles the distance.
  struct bin {
    unsigned level, place;
    bin next() const noexcept {
      return place + 1 < places ? bin{level, place + 1} : bin{level + 1, 0};
    }
    bool has_one_size() const noexcept { return level < 2; }
  };

  static bin bin_of(std::size_t bytes) noexcept {
    const std::size_t granules = bytes / granule_bytes;
    if (granules < places) return {0, static_cast<unsigned>(granules)};
    const auto doubling = static_cast<unsigned>(std::bit_width(granules)) - 1;
    return {doubling - places_log2 + 1,
            static_cast<unsigned>(granules >> (doubling - places_log2)) - places};
  }

  // The first bin, from `first` on, that has a block; after the last level if there is none.
  bin next_used(bin first) const noexcept {
    if (first.level >= levels) return {levels, 0};
    const std::uint32_t here = places_[first.level] >> first.place << first.place;
    if (here != 0) return {first.level, static_cast<unsigned>(std::countr_zero(here))};
    const std::uint64_t above = levels_ >> first.level >> 1;
    if (above == 0) return {levels, 0};
    const unsigned level = first.level + 1 + static_cast<unsigned>(std::countr_zero(above));
    return {level, static_cast<unsigned>(std::countr_zero(places_[level]))};
  }

  std::uint64_t levels_ = 0;                    // one bit per level: has a block
  std::array<std::uint32_t, levels> places_{};  // one bit per bin of the level: has a block
  std::array<std::array<pool_block*, places>, levels> heads_{};
};

}  // namespace shale::detail
