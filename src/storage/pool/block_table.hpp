// The live blocks of a heap by their addresses: an open-addressing hash table, probed linearly,
// with backward-shift deletion, so that a look-up reads one cache line as a rule.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "storage/pool/block.hpp"

namespace shale::detail {

class block_table {
 public:
  /// Makes sure that one more block has room; false without memory for that.
  bool reserve() noexcept { return count_ < roomy_ || grow(); }

  /// After reserve(); no block in the table begins at the same address.
  void insert(pool_block& live) noexcept {
    place({live.address, &live});
    ++count_;
  }

  /// Null if none begins there.
  pool_block* find(const void* address) const noexcept {
    if (count_ == 0) return nullptr;
    return slots_[probe(address)].block;
  }

  /// The block is in the table. Allocates nothing.
  void erase(const pool_block& live) noexcept {
    slot* const slots = slots_.get();
    std::size_t hole = probe(live.address);
    assert(slots[hole].block == &live);
    // What was placed behind its home because of the block that goes moves up.
    for (std::size_t at = (hole + 1) & last_; slots[at].block != nullptr; at = (at + 1) & last_) {
      const std::size_t displaced_by = (at - home(slots[at].address)) & last_;
      if (displaced_by < ((at - hole) & last_)) continue;
      slots[hole] = slots[at];
      hole = at;
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

  // The high bits of a product with 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4).
  std::size_t home(const void* address) const noexcept {
    const auto granule =
        static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)) / granule_bytes;
    return static_cast<std::size_t>((granule * 0x9E3779B97F4A7C15u) >> shift_);
  }

  // Where a block that begins there is, or would be.
  std::size_t probe(const void* address) const noexcept {
    const slot* const slots = slots_.get();
    std::size_t at = home(address);
    while (slots[at].block != nullptr && slots[at].address != address) at = (at + 1) & last_;
    return at;
  }

  void place(const slot& live) noexcept {
    const std::size_t at = probe(live.address);
    assert(slots_[at].block == nullptr);
    slots_[at] = live;
  }

  bool grow() noexcept;

  std::unique_ptr<slot[]> slots_;  // a power of two of them
  std::size_t last_ = 0;
  int shift_ = 0;
  std::size_t count_ = 0;
  std::size_t roomy_ = 0;  // half of the slots: fewer blocks than that keep probes short
};

}  // namespace shale::detail
