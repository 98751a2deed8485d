// The cache of one thread. It keeps blocks of size classes that the thread has freed, and the large
// block that it freed last. It also has counts that are not yet added to the counts of the pool.
//
// Invariants
//   cached.1  `bytes` is the total size of all kept blocks; none of them is live
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "storage/pool/caches/biased_lock.hpp"
#include "storage/pool/heap/size_classes.hpp"
#include "storage/system/pages.hpp"

namespace shale::detail {

/// A thread may cache `thread_bytes_max` bytes of class blocks. At its next call of the heap it
/// shrinks its cache to `thread_bytes_kept`.
inline constexpr std::size_t thread_bytes_kept = std::size_t{1} << 20;
inline constexpr std::size_t thread_bytes_max = 2 * thread_bytes_kept;

/// The largest block that a thread keeps as the last freed one.
inline constexpr std::size_t large_bytes_kept = std::size_t{64} << 20;

/// Not synchronised: every user must hold `lock`.
class thread_cache {
 public:
  mutable biased_lock lock;
  std::int64_t live_bytes = 0;       // allocated minus freed here: negative if others allocate
  std::int64_t peak_live_bytes = 0;  // the highest sum of live_bytes and the pool's count
  // This member does not lie beside live_bytes: otherwise the compiler would update the two as one
  // vector, which is slower.
  std::int64_t live_blocks = 0;
  std::uint64_t hits = 0;
  std::size_t reported_bytes = 0;  // the last number of kept bytes that was reported to the pool

  /// The bytes of all kept blocks, and of kept class blocks only.
  std::size_t bytes() const noexcept { return class_block_bytes_ + large_.bytes; }
  std::size_t class_block_bytes() const noexcept { return class_block_bytes_; }

  /// A kept block that serves the request; null if there is none.
  void* take(const block_request& wanted) noexcept {
    mark_used(wanted);
    if (wanted.kind == block_kind::large) {
      if (large_.address == nullptr || large_.bytes != wanted.bytes) return nullptr;
      if (reinterpret_cast<std::uintptr_t>(large_.address) % wanted.alignment != 0) return nullptr;
      return drop_large();
    }
    auto& cached = magazines_[wanted.size_class];
    if (cached.count == 0) return nullptr;
    class_block_bytes_ -= wanted.bytes;
    return cached.blocks[--cached.count];
  }

  /// Whether there is a place for this block.
  bool has_place(const block_request& freed) const noexcept {
    if (freed.kind == block_kind::large) return large_.address == nullptr;
    return magazines_[freed.size_class].count < magazine_blocks(freed.size_class);
  }

  void keep(void* address, const block_request& freed) noexcept {
    mark_used(freed);
    if (freed.kind == block_kind::large) {
      large_ = {address, freed.bytes};
      return;
    }
    auto& into = magazines_[freed.size_class];
    into.blocks[into.count++] = address;
    class_block_bytes_ += freed.bytes;
  }

  /// Removes and returns the large block; null if there is none.
  void* drop_large() noexcept { return std::exchange(large_, {}).address; }

  /// Passes the oldest `blocks` of a class to `give_back`. The newest stay, because they are still
  /// in the processor's caches.
  template <class GiveBack>
  void drop(std::size_t size_class, std::uint32_t blocks, const GiveBack& give_back) noexcept {
    auto& cached = magazines_[size_class];
    std::for_each_n(cached.blocks.begin(), blocks, give_back);
    std::move(cached.blocks.begin() + blocks, cached.blocks.begin() + cached.count,
              cached.blocks.begin());
    cached.count -= blocks;
    cached.refill /= 2;
    class_block_bytes_ -= blocks * block_bytes_of_class(size_class);
  }

  std::uint32_t blocks_of(std::size_t size_class) const noexcept {
    return magazines_[size_class].count;
  }

  /// The class with the most kept bytes.
  std::size_t fullest_class() const noexcept {
    std::size_t fullest = 0;
    std::size_t most = 0;
    for (std::size_t size_class = 0; size_class < size_classes; ++size_class) {
      const std::size_t kept = magazines_[size_class].count * block_bytes_of_class(size_class);
      if (kept > most) {
        most = kept;
        fullest = size_class;
      }
    }
    return fullest;
  }

  /// Passes to `give_back` the blocks that were not used since the last call of this function: the
  /// large block, and all blocks of unused classes.
  template <class GiveBack>
  void drop_unused(const GiveBack& give_back) noexcept {
    const std::uint32_t used = std::exchange(used_, 0);
    if (void* const large = (used & large_bit) == 0 ? drop_large() : nullptr) give_back(large);
    for (std::size_t size_class = 0; size_class < size_classes; ++size_class)
      if ((used >> size_class & 1) == 0) drop(size_class, blocks_of(size_class), give_back);
  }

  /// The number of extra blocks to fetch at a miss. It doubles with each miss, up to half a
  /// magazine.
  std::uint32_t blocks_ahead(std::size_t size_class) noexcept {
    auto& cached = magazines_[size_class];
    const auto most = static_cast<std::uint32_t>(magazine_blocks(size_class) / 2);
    return std::exchange(cached.refill, std::min(most, 2 * cached.refill + 1));
  }

 private:
  static constexpr std::uint32_t large_bit = std::uint32_t{1} << size_classes;

  void mark_used(const block_request& request) noexcept {
    used_ |= request.kind == block_kind::large ? large_bit : std::uint32_t{1} << request.size_class;
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
  std::size_t class_block_bytes_ = 0;
  std::uint32_t used_ = 0;  // since the last tick: one bit per class
};

}  // namespace shale::detail
