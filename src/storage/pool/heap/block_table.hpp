// Finds the live blocks of a heap by their addresses: an open-addressing hash table with linear
// probing and backward-shift deletion, so that a look-up usually reads one cache line.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "storage/pool/heap/block.hpp"

namespace shale::detail {

class block_table {
 public:
  /// Makes room for one more block; false if there is no memory for that.
  bool reserve() noexcept { return count_ < roomy_ || grow(); }

  /// Adds a block after a successful reserve(). No block in the table has the same address.
  void insert(pool_block& live) noexcept {
    place({live.address, &live});
    ++count_;
  }

  /// The block at the address, or null.
  pool_block* find(const void* address) const noexcept {
    if (count_ == 0) return nullptr;
    return slots_[probe(address)].block;
  }

  /// Removes a block that is in the table. Allocates nothing.
  void erase(const pool_block& live) noexcept {
    slot* const slots = slots_.get();
    std::size_t hole = probe(live.address);
    assert(slots[hole].block == &live);
    // Fill the hole: move back each following entry that would not be found any more, because
    // linear probing from its home position would stop at the hole.
    for (std::size_t next = (hole + 1) & last_; slots[next].block != nullptr;
         next = (next + 1) & last_) {
      const std::size_t displaced_by = (next - home(slots[next].address)) & last_;
      if (displaced_by < ((next - hole) & last_)) continue;
      slots[hole] = slots[next];
      hole = next;
    }
    slots[hole].block = nullptr;
    --count_;
  }

  std::size_t size() const noexcept { return count_; }

 private:
  struct slot {
    const void* address = nullptr;
    pool_block* block = nullptr;  // null: an empty slot
  };

  // The first slot to try: the high bits of the granule's number times 2^64 divided by the golden
  // ratio (Knuth, TAOCP 3, 6.4).
  std::size_t home(const void* address) const noexcept {
    const auto granule =
        static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)) / granule_bytes;
    return static_cast<std::size_t>((granule * 0x9E3779B97F4A7C15u) >> shift_);
  }

  // The slot of the block with this address, or the free slot in which it would be placed.
  std::size_t probe(const void* address) const noexcept {
    const slot* const slots = slots_.get();
    std::size_t place = home(address);
    while (slots[place].block != nullptr && slots[place].address != address)
      place = (place + 1) & last_;
    return place;
  }

  void place(const slot& live) noexcept {
    const std::size_t free_place = probe(live.address);
    assert(slots_[free_place].block == nullptr);
    slots_[free_place] = live;
  }

  bool grow() noexcept;

  std::unique_ptr<slot[]> slots_;  // their number is a power of two
  std::size_t last_ = 0;
  int shift_ = 0;
  std::size_t count_ = 0;
  std::size_t roomy_ = 0;  // half of the slots: with fewer blocks, probe sequences stay short
};

}  // namespace shale::detail
