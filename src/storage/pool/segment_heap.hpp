// Blocks cut from large mappings on huge pages: best fit, split and eagerly coalesced; and what
// becomes of the memory behind free ones as they age.
//
// Not synchronised: its owner holds one lock around every call.
//
// Invariants
//   heap.1  every mapped byte belongs to exactly one block; neighbours in memory are neighbours in
//           address order, and no two of one mapping are both free (a heap that splits)
//   heap.2  freeing allocates nothing
//   heap.3  the memory behind a free block only loses backing (dirty -> lazy -> none) until it is
//           handed out again; blocks that coalesce age as the most backed of them
#pragma once

#include <boost/intrusive/set.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "storage/pool/memory_quota.hpp"
#include "storage/pool/size_classes.hpp"

namespace shale::detail {

using pool_clock = std::chrono::steady_clock;

/// How old idle memory is when it gives up more.
struct decay_ages {
  std::chrono::milliseconds lazy{1000};     ///< the system may take it (MADV_FREE)
  std::chrono::milliseconds drop{10'000};   ///< the system has it (MADV_DONTNEED)
  std::chrono::milliseconds unmap{28'000};  ///< gone within 30 s, caches and ticks and all
};

/// What stands behind a free block.
enum class backing : std::uint8_t {
  dirty,  ///< memory that only we can use
  lazy,   ///< memory that the system takes when it needs some
  none,   ///< none: the next touch brings zeros
};

class segment_heap {
 private:
  struct by_address;
  struct by_size;

 public:
  static constexpr std::size_t segment_bytes = std::size_t{64} << 20;
  static constexpr std::size_t step_bytes = std::size_t{16} << 20;

  struct block : boost::intrusive::set_base_hook<boost::intrusive::tag<by_address>>,
                 boost::intrusive::set_base_hook<boost::intrusive::tag<by_size>> {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    bool free = false;
    bool leads = false;  // a mapping: no block of another one is joined with it
    backing behind = backing::none;
    pool_clock::time_point since{};  // of a free block: when most of it became idle
    std::size_t dirty_bytes = 0;     // of a free block: about how much of it is dirty
    std::size_t aged = 0;            // of a free block: leading bytes that have lost more already

    std::byte* end() const noexcept { return address + bytes; }
  };

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

  /// The same without asking the system for memory; null if there is none.
  block* reuse(std::size_t bytes, std::size_t alignment) noexcept;

  /// The same, of memory that is there; null rather than have the system bring pages.
  block* reuse_backed(std::size_t bytes, std::size_t alignment) noexcept;

  /// `behind` says what is known about its memory.
  void free(block& which, backing behind, pool_clock::time_point now) noexcept;

  /// The live block that contains the address.
  block& find(const void* address) noexcept;

  /// Lets a free block that is old enough, the first from `cursor` on in address order, lose
  /// backing: one system call for at most `step_bytes`, so long is the owner's lock held. Moves
  /// `cursor` behind that; false when nothing was left to do.
  bool age(std::byte*& cursor, pool_clock::time_point now, const decay_ages& ages) noexcept;

  /// Lets the block that has been dirty longest lose all its backing to the system's needs, old
  /// enough or not; false if none is dirty.
  bool age_oldest() noexcept;

  /// Unmaps every free block. Returns the bytes.
  std::size_t trim() noexcept;

  /// Whether time alone would still change something.
  bool is_ageing() const noexcept;

  std::size_t free_bytes() const noexcept { return free_bytes_; }
  /// Of the free; what is left of a block that was cut is taken to be dirty at its front, where
  /// earlier ones were cut.
  std::size_t dirty_bytes() const noexcept { return dirty_bytes_; }
  std::size_t largest_free_bytes() const noexcept;
  std::uint64_t splits() const noexcept { return splits_; }
  std::uint64_t coalesces() const noexcept { return coalesces_; }

  /// Checks heap.1 and the counts, for tests.
  bool is_consistent() const noexcept;

 private:
  struct address_order {
    bool operator()(const block& a, const block& b) const noexcept { return a.address < b.address; }
    bool operator()(const void* a, const block& b) const noexcept { return a < b.address; }
    bool operator()(const block& a, const void* b) const noexcept { return a.address < b; }
  };
  struct size_order {
    bool operator()(const block& a, const block& b) const noexcept {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.address < b.address;
    }
    bool operator()(const block& a, std::size_t bytes) const noexcept { return a.bytes < bytes; }
    bool operator()(std::size_t bytes, const block& a) const noexcept { return bytes < a.bytes; }
  };
  using address_set =
      boost::intrusive::set<block,
                            boost::intrusive::base_hook<
                                boost::intrusive::set_base_hook<boost::intrusive::tag<by_address>>>,
                            boost::intrusive::compare<address_order>,
                            boost::intrusive::constant_time_size<false>>;
  using size_set = boost::intrusive::set<
      block,
      boost::intrusive::base_hook<boost::intrusive::set_base_hook<boost::intrusive::tag<by_size>>>,
      boost::intrusive::compare<size_order>, boost::intrusive::constant_time_size<false>>;

  block* take(block& found, std::size_t bytes) noexcept;
  bool map_segment(std::size_t bytes, std::size_t alignment, pool_clock::time_point now) noexcept;
  bool cut_front(block& from, std::size_t bytes) noexcept;
  void enlist(block& idle) noexcept;
  void delist(block& idle) noexcept;
  void enlist_coalesced(block& idle) noexcept;
  void absorb(block& into, block& next) noexcept;
  void lose_backing(block& idle, std::size_t most_bytes) noexcept;
  std::byte* unmap_first(block& idle) noexcept;
  void forget(block& unmapped) noexcept;

  memory_quota& quota_;
  const cutting how_;
  address_set blocks_;
  size_set free_;
  std::size_t free_bytes_ = 0;
  std::size_t dirty_bytes_ = 0;
  std::uint64_t splits_ = 0;
  std::uint64_t coalesces_ = 0;
};

}  // namespace shale::detail
