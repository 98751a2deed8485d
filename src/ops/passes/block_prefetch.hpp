// Prefetches the leaves of the block that a tape runs on next.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "shale/index.hpp"

namespace shale::ops {

/// Prefetches the elements of the next block, a part with each instruction. Between the
/// instructions that read the block's leaves, a tape works in the cache, and the memory would be
/// idle.
class block_prefetch {
 public:
  block_prefetch(const std::vector<int>& leaves, std::byte* const* data, const index_t* strides,
                 index_t inner, std::size_t parts)
      : parts_(static_cast<index_t>(parts)) {
    for (const int leaf : leaves) {
      const index_t stride = strides[leaf];
      if (count_ == next_.size() || stride <= 0 || stride > line_bytes) continue;
      next_[count_++] = {data[leaf] + inner * stride, inner * stride};
    }
  }

  void part(index_t number) const {
    for (std::size_t k = 0; k < count_; ++k) {
      const index_t end = next_[k].bytes * (number + 1) / parts_;
      for (index_t at = next_[k].bytes * number / parts_; at < end; at += line_bytes)
        __builtin_prefetch(next_[k].address + at, 0, 2);
    }
  }

 private:
  static constexpr index_t line_bytes = 64;

  struct range {
    const std::byte* address;
    index_t bytes;
  };
  std::array<range, 8> next_{};
  std::size_t count_ = 0;
  const index_t parts_;
};

}  // namespace shale::ops
