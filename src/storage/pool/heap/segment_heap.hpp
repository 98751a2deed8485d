// A heap of blocks that are cut from large mappings on huge pages. It searches by good fit, splits
// blocks and coalesces free ones at once, and gives the memory of free blocks back to the system as
// they age. The cost of allocating and freeing does not depend on the number of blocks. Both touch
// few cache lines, because each line may have to come from another processor's cache.
//
// Not synchronised: the owner holds one lock around every call.
//
// Invariants
//   heap.1  every mapped byte belongs to exactly one block; the blocks of a mapping follow each
//           other in order of their addresses; in a heap that splits blocks, no two neighbours are
//           both free; blocks of different mappings are never joined
//   heap.2  freeing allocates nothing
//   heap.3  until it is allocated again, the memory of a free block only goes from dirty to lazy to
//           none; a coalesced block is dirty if any of its parts is, or else lazy if any of them is
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "storage/pool/heap/block.hpp"
#include "storage/pool/heap/block_list.hpp"
#include "storage/pool/heap/block_supply.hpp"
#include "storage/pool/heap/block_table.hpp"
#include "storage/pool/heap/free_blocks.hpp"
#include "storage/pool/heap/idle_memory.hpp"
#include "storage/pool/heap/memory_quota.hpp"

namespace shale::detail {

/// Aligned so that it shares no cache line with the lock around it, which waiting threads poll.
class alignas(64) segment_heap {
 public:
  using block = pool_block;

  static constexpr std::size_t segment_bytes = std::size_t{64} << 20;
  static constexpr std::size_t step_bytes = std::size_t{16} << 20;
  static constexpr int step_blocks = 1024;

  /// Whether blocks are cut to size from segments, or each block is a whole mapping.
  enum class cutting : std::uint8_t { to_size, never };

  segment_heap(memory_quota& quota, cutting rule) noexcept : quota_(quota), cutting_(rule) {}
  ~segment_heap();
  segment_heap(const segment_heap&) = delete;
  segment_heap& operator=(const segment_heap&) = delete;

  struct allocation {
    block* found = nullptr;  ///< null: neither the heap nor the system had memory
    bool mapped = false;     ///< whether it is new memory from the system
  };

  /// A block of at least `bytes`, its address a multiple of `alignment` (a power of two).
  allocation allocate(std::size_t bytes, std::size_t alignment,
                      pool_clock::time_point now) noexcept;

  /// Like allocate, but without asking the system for memory; null if it finds no free block. If
  /// the alignment is larger than a granule, or blocks are never cut, it may miss a block that
  /// fits, because it does not examine all blocks.
  block* reuse(std::size_t bytes, std::size_t alignment) noexcept;

  /// Like reuse, but only a block whose first `bytes` are resident already, as far as the heap
  /// knows. Null if it finds none; it looks at some larger blocks, but not at all of them.
  block* reuse_dirty(std::size_t bytes, std::size_t alignment) noexcept;

  /// Frees the block; `memory` is the known state of its memory.
  void free(block& used, memory_state memory, pool_clock::time_point now) noexcept;

  /// The live block at the address.
  block& find(const void* address) noexcept;

  /// One step of a sweep over the heap: the next free block that is old enough loses memory. To
  /// limit how long the owner's lock is held, a step makes one system call for at most
  /// `step_bytes`, or looks at `step_blocks` blocks.
  /// The caller begins a sweep with a null `cursor` and repeats the call while it returns true.
  /// Each step sets `cursor` to the address at which it ended. The heap remembers where the sweep
  /// is (`sweep_`), and only looks whether `cursor` is null: then it begins a new sweep.
  bool age(std::byte*& cursor, pool_clock::time_point now, const decay_ages& ages) noexcept;

  /// The age from which on free blocks have at least `bytes` dirty bytes, in whole milliseconds. It
  /// is the greatest such age below `ages_told_apart_ms`; 0 if there are fewer dirty bytes.
  /// Cost     looks at every free block once
  std::chrono::milliseconds age_of_oldest(std::size_t bytes,
                                          pool_clock::time_point now) const noexcept;

  /// Unmaps every free block. Returns the number of bytes.
  std::size_t trim() noexcept;

  /// Whether ageing can still change something.
  bool is_ageing() const noexcept;

  std::size_t free_bytes() const noexcept { return free_.bytes(); }
  /// The dirty bytes of free blocks, as estimated by the blocks.
  std::size_t dirty_bytes() const noexcept { return free_.dirty_bytes(); }
  std::size_t largest_free_bytes() const noexcept { return free_.by_size().largest_bytes(); }
  std::uint64_t splits() const noexcept { return splits_; }
  std::uint64_t coalesces() const noexcept { return coalesces_; }

  /// Checks heap.1 and the counts, for tests.
  bool is_consistent() const noexcept;

 private:
  // The place where a sweep continues: in `part`, of which `part_bytes` are done, or, if `part` is
  // null, at the block `next`. Other calls between two steps may use or remove these blocks:
  // `delist` then clears `part`, and `remove` moves `next` on.
  struct sweep {
    block* part = nullptr;
    std::size_t part_bytes = 0;
    block* next = nullptr;
  };

  template <class Suits>
  block* reuse_where(std::size_t bytes, std::size_t alignment, Suits suits) noexcept;
  block* take(block& found, std::size_t bytes, std::size_t alignment) noexcept;
  block* map_segment(std::size_t bytes, std::size_t alignment, pool_clock::time_point now) noexcept;
  block* cut(block& whole, std::size_t bytes) noexcept;
  void delist(block& idle) noexcept;
  void enlist_coalesced(block& idle) noexcept;
  void absorb(block& into, block& next) noexcept;
  void lose_memory(block& idle, std::size_t first, std::size_t bytes) noexcept;
  bool can_unmap(const block& idle) const noexcept;
  std::byte* unmap_first(block& idle) noexcept;
  void forget(block& unmapped) noexcept;
  void remove(block& gone) noexcept;

  memory_quota& quota_;
  const cutting cutting_;
  block_list blocks_;  // mappings are in the order in which they were made
  std::uint64_t splits_ = 0;
  std::uint64_t coalesces_ = 0;
  sweep sweep_;
  block_supply supply_;
  block_table live_;
  free_blocks free_;
};

}  // namespace shale::detail
