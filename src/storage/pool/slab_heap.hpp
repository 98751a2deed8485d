// Blocks of 32 KiB to 1 MiB by class, cut from slabs that are blocks of a segment heap.
//
// Not synchronised: its owner holds one lock around every call.
//
// Invariants
//   slab.1  a slab with no block in use goes back to the heap at once
//   slab.2  the lowest slab with a free block serves next, so that the others empty
//   slab.3  freeing allocates nothing
#pragma once

#include <array>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>

#include "storage/pool/segment_heap.hpp"
#include "storage/pool/size_classes.hpp"

namespace shale::detail {

/// One slab: block i lies at i * class size.
struct slab : boost::intrusive::set_base_hook<> {
  segment_heap::block* run = nullptr;
  std::size_t size_class = 0;
  std::uint32_t blocks = 0;
  std::uint64_t free = 0;          // a bit a block
  std::uint64_t dirty = 0;         // of the free ones: memory that only we can use
  std::uint64_t lazy = 0;          // of the free ones: memory that the system may take
  pool_clock::time_point since{};  // when a block was freed last

  std::uint64_t all() const noexcept {
    return blocks == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << blocks) - 1;
  }
};

class slab_heap {
 public:
  explicit slab_heap(segment_heap& from) noexcept : heap_(from) {}
  ~slab_heap();
  slab_heap(const slab_heap&) = delete;
  slab_heap& operator=(const slab_heap&) = delete;

  struct allocation {
    std::byte* address = nullptr;  ///< null: no memory
    bool mapped = false;           ///< new memory from the system
  };
  allocation allocate(std::size_t size_class, pool_clock::time_point now) noexcept;
  void free(void* address, pool_clock::time_point now) noexcept;

  /// Gives back the memory behind free blocks of slabs that have been quiet long enough.
  void decay(pool_clock::time_point now, const decay_ages& ages) noexcept;

  /// Gives back the memory behind all free blocks, at once.
  void drop_idle() noexcept;

  bool has_free(std::size_t size_class) const noexcept { return !open_[size_class].empty(); }
  bool is_ageing() const noexcept;
  std::size_t free_bytes() const noexcept { return free_bytes_; }    ///< in blocks
  std::size_t dirty_bytes() const noexcept { return dirty_bytes_; }  ///< of these
  std::size_t largest_free_bytes() const noexcept;
  bool is_consistent() const noexcept;

 private:
  struct address_order {
    bool operator()(const slab& a, const slab& b) const noexcept {
      return a.run->address < b.run->address;
    }
  };
  using slab_set = boost::intrusive::set<slab, boost::intrusive::compare<address_order>,
                                         boost::intrusive::constant_time_size<false>>;

  slab* make_slab(std::size_t size_class, pool_clock::time_point now, bool& mapped) noexcept;
  void release(slab& empty, pool_clock::time_point now) noexcept;
  static void give_back(const slab& of, std::uint64_t blocks, int advice) noexcept;

  segment_heap& heap_;
  std::array<slab_set, size_classes> open_;  // slabs with free blocks
  std::size_t free_bytes_ = 0;
  std::size_t dirty_bytes_ = 0;
};

}  // namespace shale::detail
