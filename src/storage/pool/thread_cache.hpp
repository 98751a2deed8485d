// What one thread keeps at hand: blocks of the classes that it freed, the large block that it freed
// last, and what it counted and has not yet added to the pool's counts.
//
// Invariants
//   kept.1  `bytes` is what all kept blocks come to; none of them is live
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "storage/pages.hpp"
#include "storage/pool/biased_lock.hpp"
#include "storage/pool/size_classes.hpp"

namespace shale::detail {

/// Not synchronised, but for `lock`, which whoever looks inside holds.
class thread_cache {
 public:
  mutable biased_lock lock;
  std::int64_t live_bytes = 0;       // allocated less freed here: negative where others allocate
  std::int64_t peak_live_bytes = 0;  // highest sum of this and the pool's
  std::int64_t live_blocks = 0;      // not beside live_bytes: added to as a pair, they are slower
  std::uint64_t hits = 0;
  std::size_t declared_bytes = 0;  // what the pool thinks is kept here

  /// Of all blocks, and of those of classes.
  std::size_t bytes() const noexcept { return class_bytes_ + large_.bytes; }
  std::size_t bytes_of_classes() const noexcept { return class_bytes_; }

  /// A kept block that serves the request; null if there is none.
  void* take(const block_request& wanted) noexcept {
    mark_used(wanted);
    if (wanted.route == block_route::heap) {
      if (large_.address == nullptr || large_.bytes != wanted.bytes) return nullptr;
      if (reinterpret_cast<std::uintptr_t>(large_.address) % wanted.alignment != 0) return nullptr;
      return drop_large();
    }
    auto& from = magazines_[wanted.size_class];
    if (from.count == 0) return nullptr;
    class_bytes_ -= wanted.bytes;
    return from.blocks[--from.count];
  }

  /// Whether one more block as requested would find a place.
  bool has_place(const block_request& freed) const noexcept {
    if (freed.route == block_route::heap) return large_.address == nullptr;
    return magazines_[freed.size_class].count < magazine_blocks(freed.size_class);
  }

  void keep(void* address, const block_request& freed) noexcept {
    mark_used(freed);
    if (freed.route == block_route::heap) {
      large_ = {address, freed.bytes};
      return;
    }
    auto& into = magazines_[freed.size_class];
    into.blocks[into.count++] = address;
    class_bytes_ += freed.bytes;
  }

  /// The large block, kept no longer; null if there is none.
  void* drop_large() noexcept { return std::exchange(large_, {}).address; }

  /// Hands the oldest `blocks` of a class to `give_back`: what was freed last is in the processor's
  /// caches.
  template <class GiveBack>
  void drop(std::size_t size_class, std::uint32_t blocks, const GiveBack& give_back) noexcept {
    auto& from = magazines_[size_class];
    std::for_each_n(from.blocks.begin(), blocks, give_back);
    std::move(from.blocks.begin() + blocks, from.blocks.begin() + from.count, from.blocks.begin());
    from.count -= blocks;
    from.refill /= 2;
    class_bytes_ -= blocks * class_bytes(size_class);
  }

  std::uint32_t blocks_of(std::size_t size_class) const noexcept {
    return magazines_[size_class].count;
  }

  /// The class of which most bytes are kept.
  std::size_t fullest_class() const noexcept {
    std::size_t fullest = 0;
    std::size_t most = 0;
    for (std::size_t each = 0; each < size_classes; ++each) {
      const std::size_t kept = magazines_[each].count * class_bytes(each);
      if (kept > most) {
        most = kept;
        fullest = each;
      }
    }
    return fullest;
  }

  /// Hands to `give_back` what was of no use since the last time this was asked: the large block,
  /// and all blocks of a class.
  template <class GiveBack>
  void drop_unused(const GiveBack& give_back) noexcept {
    const std::uint32_t used = std::exchange(used_, 0);
    if (void* const large = (used & large_bit) == 0 ? drop_large() : nullptr) give_back(large);
    for (std::size_t each = 0; each < size_classes; ++each)
      if ((used >> each & 1) == 0) drop(each, blocks_of(each), give_back);
  }

  /// How many blocks to fetch at a miss beyond the one that is wanted: the more the more often.
  std::uint32_t blocks_ahead(std::size_t size_class) noexcept {
    auto& of = magazines_[size_class];
    const auto most = static_cast<std::uint32_t>(magazine_blocks(size_class) / 2);
    return std::exchange(of.refill, std::min(most, 2 * of.refill + 1));
  }

 private:
  static constexpr std::uint32_t large_bit = std::uint32_t{1} << size_classes;

  void mark_used(const block_request& by) noexcept {
    used_ |= by.route == block_route::heap ? large_bit : std::uint32_t{1} << by.size_class;
  }

  struct magazine {
    std::uint32_t count = 0;
    std::uint32_t refill = 0;
    std::array<void*, magazine_blocks_max> blocks;
  };
  struct kept_block {
    void* address = nullptr;
    std::size_t bytes = 0;
  };

  std::array<magazine, size_classes> magazines_;
  kept_block large_;
  std::size_t class_bytes_ = 0;
  std::uint32_t used_ = 0;  // since the last tick: a bit a class
};

}  // namespace shale::detail
