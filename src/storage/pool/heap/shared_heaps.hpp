// The heaps of a pool, which all threads share, and their lock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>

#include "storage/pool/heap/idle_memory.hpp"
#include "storage/pool/heap/memory_quota.hpp"
#include "storage/pool/heap/segment_heap.hpp"
#include "storage/pool/heap/size_classes.hpp"
#include "storage/pool/heap/spinning_mutex.hpp"

namespace shale::detail {

/// Two heaps: blocks of size classes and large blocks are cut from segments, and each block that is
/// larger has a mapping of its own.
/// Threads  every member may be called from any thread; the heaps are reached through a `hold`
class shared_heaps {
 public:
  /// Lifetime refers to `quota`
  explicit shared_heaps(memory_quota& quota) noexcept
      : segments_(quota, segment_heap::cutting::to_size),
        mappings_(quota, segment_heap::cutting::never) {}

  /// While it lives, no other thread can use the heaps. Neither allocates nor throws.
  class hold {
   public:
    explicit hold(shared_heaps& heaps) noexcept : lock_(heaps.lock_), heaps_(heaps) {}

    segment_heap& segments() const noexcept { return heaps_.segments_; }

    /// The heap of blocks of this kind, which is not `small`.
    segment_heap& of(block_kind kind) const noexcept {
      return kind == block_kind::whole_mapping ? heaps_.mappings_ : heaps_.segments_;
    }

    /// Unmaps every free block. Returns the number of bytes.
    std::size_t trim() const noexcept { return heaps_.segments_.trim() + heaps_.mappings_.trim(); }

    std::size_t dirty_bytes() const noexcept {
      return heaps_.segments_.dirty_bytes() + heaps_.mappings_.dirty_bytes();
    }
    std::size_t largest_free_bytes() const noexcept {
      return std::max(heaps_.segments_.largest_free_bytes(), heaps_.mappings_.largest_free_bytes());
    }

    /// Whether ageing can still change something.
    bool is_ageing() const noexcept {
      return heaps_.segments_.is_ageing() || heaps_.mappings_.is_ageing();
    }
    bool is_consistent() const noexcept {
      return heaps_.segments_.is_consistent() && heaps_.mappings_.is_consistent();
    }

   private:
    const std::lock_guard<spinning_mutex> lock_;
    shared_heaps& heaps_;
  };

  /// One sweep over all free blocks: those that are old enough lose memory. Other threads may use
  /// the heaps between its steps.
  void age(pool_clock::time_point now, const decay_ages& ages) noexcept {
    for (segment_heap* const heap : {&segments_, &mappings_}) {
      std::byte* cursor = nullptr;
      for (bool more = true; more;) {
        const std::lock_guard lock(lock_);
        more = heap->age(cursor, now, ages);
      }
    }
  }

  /// Offers the system at least `bytes` of dirty memory, or all of it, oldest blocks first. Other
  /// threads may use the heaps between its steps.
  /// Cost     looks at every block three times, however many blocks lose memory
  void age_oldest(std::size_t bytes, pool_clock::time_point now) noexcept {
    for (segment_heap* const heap : {&mappings_, &segments_}) {
      if (bytes == 0) return;
      // The first sweep takes all blocks that are older than `last`. The second one takes blocks of
      // exactly that age, of which only some may have to lose memory.
      const std::chrono::milliseconds last = age_of_oldest(*heap, bytes, now);
      for (const auto from : {last + std::chrono::milliseconds(1), last})
        bytes -= lose_dirty(*heap, bytes, now, only_lazy_from(from));
    }
  }

 private:
  std::chrono::milliseconds age_of_oldest(const segment_heap& heap, std::size_t bytes,
                                          pool_clock::time_point now) noexcept {
    const std::lock_guard lock(lock_);
    return heap.age_of_oldest(bytes, now);
  }

  // A sweep over the blocks of these ages, until `wanted` dirty bytes are gone. Returns how many
  // are, at most `wanted`.
  std::size_t lose_dirty(segment_heap& heap, std::size_t wanted, pool_clock::time_point now,
                         const decay_ages& ages) noexcept {
    std::size_t lost = 0;
    std::byte* cursor = nullptr;
    for (bool more = true; more && lost < wanted;) {
      const std::lock_guard lock(lock_);
      const std::size_t before = heap.dirty_bytes();
      more = heap.age(cursor, now, ages);
      lost += before - heap.dirty_bytes();
    }
    return std::min(lost, wanted);
  }

  spinning_mutex lock_;
  segment_heap segments_;
  segment_heap mappings_;
};

}  // namespace shale::detail
