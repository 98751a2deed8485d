// Blocks cut from large mappings on huge pages: good fit, split and eagerly coalesced; and what
// becomes of the memory behind free ones as they age. Handing a block out and taking it back cost
// the same however many there are, and touch few cache lines: each may have been another
// processor's last.
//
// Not synchronised: its owner holds one lock around every call.
//
// Invariants
//   heap.1  every mapped byte belongs to exactly one block; the blocks of a mapping follow each
//           other in order of their addresses, and no two neighbours are both free (a heap that
//           splits); blocks of different mappings are never joined
//   heap.2  freeing allocates nothing
//   heap.3  the memory behind a free block only loses backing (dirty -> lazy -> none) until it is
//           handed out again; blocks that coalesce age as the most backed of them
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "storage/pool/block.hpp"
#include "storage/pool/block_supply.hpp"
#include "storage/pool/block_table.hpp"
#include "storage/pool/memory_quota.hpp"
#include "storage/pool/size_bins.hpp"

namespace shale::detail {

/// How old idle memory is when it gives up more.
struct decay_ages {
  std::chrono::milliseconds lazy{1000};     ///< the system may take it (MADV_FREE)
  std::chrono::milliseconds drop{10'000};   ///< the system has it (MADV_DONTNEED)
  std::chrono::milliseconds unmap{28'000};  ///< gone within 30 s, caches and ticks and all
};

/// Shares no cache line with the lock around it, which others watch while they wait.
class alignas(64) segment_heap {
 public:
  using block = pool_block;

  static constexpr std::size_t segment_bytes = std::size_t{64} << 20;
  static constexpr std::size_t step_bytes = std::size_t{16} << 20;
  static constexpr int step_blocks = 1024;

  /// Whether blocks are cut to size from segments, or each is a mapping that stays whole.
  enum class cutting : std::uint8_t { to_size, never };

  segment_heap(memory_quota& quota, cutting how) noexcept : quota_(quota), how_(how) {}
  ~segment_heap();
  segment_heap(const segment_heap&) = delete;
  segment_heap& operator=(const segment_heap&) = delete;

  struct allocation {
    block* where = nullptr;  ///< null: neither free memory nor the system's was to be had
    bool mapped = false;     ///< new memory from the system
  };

  /// A block of at least `bytes`, its address a multiple of `alignment` (a power of two).
  allocation allocate(std::size_t bytes, std::size_t alignment,
                      pool_clock::time_point now) noexcept;

  /// The same without asking the system for memory; null if there is none at hand. A good fit is
  /// found where there is one; of aligned ones not every possible place is looked at.
  block* reuse(std::size_t bytes, std::size_t alignment) noexcept;

  /// The same if touching the first `bytes` of it brings in no new page, as far as the heap knows;
  /// null if no block is found to be so: it looks at larger ones, but not at all of them.
  block* reuse_dirty(std::size_t bytes, std::size_t alignment) noexcept;

  /// `behind` says what is known about its memory.
  void free(block& which, backing behind, pool_clock::time_point now) noexcept;

  /// The live block that begins at the address.
  block& find(const void* address) noexcept;

  /// Lets a free block that is old enough lose backing, the next one in the heap's order: one
  /// system call for at most `step_bytes`, or a look at `step_blocks`, so long is the owner's lock
  /// held. A sweep begins with a null `cursor` and ends when the result is false, as nothing was
  /// left to do; `cursor` says where its last step ended. A new sweep ends the one before it.
  bool age(std::byte*& cursor, pool_clock::time_point now, const decay_ages& ages) noexcept;

  /// Lets the block that has been dirty longest lose all its backing to the system's needs, old
  /// enough or not; false if none is dirty.
  bool age_oldest() noexcept;

  /// Unmaps every free block. Returns the bytes.
  std::size_t trim() noexcept;

  /// Whether time alone would still change something.
  bool is_ageing() const noexcept;

  std::size_t free_bytes() const noexcept { return free_bytes_; }
  /// Of the free, as their blocks estimate it.
  std::size_t dirty_bytes() const noexcept { return dirty_bytes_; }
  std::size_t largest_free_bytes() const noexcept { return bins_.largest_bytes(); }
  std::uint64_t splits() const noexcept { return splits_; }
  std::uint64_t coalesces() const noexcept { return coalesces_; }

  /// Checks heap.1 and the counts, for tests.
  bool is_consistent() const noexcept;

 private:
  // Where a sweep goes on: at what is left of a block that is done in part, or at the next one.
  struct sweep {
    block* part = nullptr;
    std::size_t part_bytes = 0;
    block* next = nullptr;
  };

  template <class Suits>
  block* reuse_where(std::size_t bytes, std::size_t alignment, Suits suits) noexcept;
  block* take(block& found, std::size_t bytes, std::size_t alignment) noexcept;
  block* map_segment(std::size_t bytes, std::size_t alignment, pool_clock::time_point now) noexcept;
  block* cut(block& from, std::size_t bytes) noexcept;
  void enlist(block& idle) noexcept;
  void delist(block& idle) noexcept;
  void enlist_coalesced(block& idle) noexcept;
  void absorb(block& into, block& next) noexcept;
  void lose_backing(block& idle, std::size_t first, std::size_t bytes) noexcept;
  bool can_unmap(const block& idle) const noexcept;
  std::byte* unmap_first(block& idle) noexcept;
  void forget(block& unmapped) noexcept;
  void link(block& fresh, block* before) noexcept;
  void unlink(block& gone) noexcept;

  memory_quota& quota_;
  const cutting how_;
  block* first_ = nullptr;  // mapping by mapping, as they came
  block* last_ = nullptr;
  std::size_t free_bytes_ = 0;
  std::size_t dirty_bytes_ = 0;
  std::uint64_t splits_ = 0;
  std::uint64_t coalesces_ = 0;
  sweep sweep_;
  block_supply supply_;
  block_table live_;
  size_bins bins_;
};

}  // namespace shale::detail
