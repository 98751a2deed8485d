// Free blocks by size, segregated into bins: 32 a doubling, so that a bin up to half a MiB holds
// one size and a larger one spans at most a 32nd of its own. Two levels of bitmaps find the next
// bin that is not empty, so a good fit, which is nearly the best, costs the same however many
// blocks are free.
// Source   Masmano, Ripoll, Crespo, Real: TLSF, a new dynamic memory allocator for real-time
//          systems (ECRTS 2004)
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "storage/pool/block.hpp"

namespace shale::detail {

class size_bins {
 public:
  /// What a block may have at most: more than any address space.
  static constexpr std::size_t bytes_max = std::size_t{1} << 52;

  /// Of several of one size the one that was inserted last is found first.
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

  /// The block has the size that it was inserted with.
  void erase(pool_block& idle) noexcept {
    if (idle.bin_after != nullptr) idle.bin_after->bin_before = idle.bin_before;
    if (idle.bin_before != nullptr) {
      idle.bin_before->bin_after = idle.bin_after;
      return;
    }
    const bin from = bin_of(idle.bytes);
    assert(heads_[from.level][from.place] == &idle);
    heads_[from.level][from.place] = idle.bin_after;
    if (idle.bin_after != nullptr) return;
    places_[from.level] &= ~(std::uint32_t{1} << from.place);
    if (places_[from.level] == 0) levels_ &= ~(std::uint64_t{1} << from.level);
  }

  /// A block of at least `bytes` that `fits`, of those looked at the smallest; null if none of
  /// them does. Looks at so many that one is found if any larger bin has one and all fit.
  /// Cost     O(1)
  template <class Fits>
  pool_block* good_fit(std::size_t bytes, Fits fits) const noexcept {
    int looks = looks_max;
    for (bin at = next_used(bin_of(bytes)); at.level < levels; at = next_used(at.next())) {
      pool_block* best = nullptr;
      int looks_here = looks_max_bin;
      for (pool_block* each = heads_[at.level][at.place]; each != nullptr; each = each->bin_after) {
        if (each->bytes >= bytes && (best == nullptr || each->bytes < best->bytes) && fits(*each)) {
          best = each;
          if (at.has_one_size() || each->bytes == bytes) return best;
        }
        --looks;
        if (--looks_here == 0) break;
      }
      if (best != nullptr || looks <= 0) return best;
    }
    return nullptr;
  }

  /// Visits each block, smaller bins first, until a visit returns true, and returns whether one
  /// did; a visit may erase its block.
  template <class Visit>
  bool any_of(Visit visit) const {
    for (bin at = next_used({0, 0}); at.level < levels; at = next_used(at.next()))
      for (pool_block* each = heads_[at.level][at.place]; each != nullptr;) {
        pool_block& visited = *each;
        each = each->bin_after;
        if (visit(visited)) return true;
      }
    return false;
  }

  /// Visits each block; a visit may erase it.
  template <class Visit>
  void for_each(Visit visit) const {
    any_of([&visit](pool_block& each) {
      visit(each);
      return false;
    });
  }

  /// The largest block's; 0 without any.
  std::size_t largest_bytes() const noexcept {
    if (levels_ == 0) return 0;
    const auto level = static_cast<std::size_t>(std::bit_width(levels_)) - 1;
    const auto place = static_cast<std::size_t>(std::bit_width(places_[level])) - 1;
    std::size_t most = 0;
    for (const pool_block* each = heads_[level][place]; each != nullptr; each = each->bin_after)
      most = std::max(most, each->bytes);
    return most;
  }

 private:
  static constexpr unsigned places_log2 = 5;
  static constexpr unsigned places = 1u << places_log2;  // bins a doubling
  static constexpr unsigned levels = 36;                 // doublings up to bytes_max
  static constexpr int looks_max_bin = 8;
  static constexpr int looks_max = 16;

  // The first two levels count granules, and each after them has steps of twice the size.
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

  // The first from there on that has a block; past the last level if there is none.
  bin next_used(bin from) const noexcept {
    if (from.level >= levels) return {levels, 0};
    const std::uint32_t here = places_[from.level] >> from.place << from.place;
    if (here != 0) return {from.level, static_cast<unsigned>(std::countr_zero(here))};
    const std::uint64_t above = levels_ >> from.level >> 1;
    if (above == 0) return {levels, 0};
    const unsigned level = from.level + 1 + static_cast<unsigned>(std::countr_zero(above));
    return {level, static_cast<unsigned>(std::countr_zero(places_[level]))};
  }

  std::uint64_t levels_ = 0;                    // which have a block
  std::array<std::uint32_t, levels> places_{};  // which of a level do
  std::array<std::array<pool_block*, places>, levels> heads_{};
};

}  // namespace shale::detail
