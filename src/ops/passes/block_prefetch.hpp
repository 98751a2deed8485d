// Prefetches the leaves of the block that a tape runs on next.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "parallel/blocks/nontemporal_copy.hpp"
#include "shale/index.hpp"

namespace shale::ops {

/// Prefetches the leaves of the next block. Only some instructions of a tape read leaves; the
/// others work in the cache, and the memory would be idle meanwhile. So each instruction prefetches
/// a part. If the block's output is stored past the cache, these stores prefetch everything
/// instead.
class block_prefetch {
 public:
  static constexpr std::size_t leaves_max = 8;

  block_prefetch(const std::vector<int>& leaves, std::byte* const* data, const index_t* strides,
                 index_t inner, std::size_t parts)
      : parts_(static_cast<index_t>(parts)) {
    for (const int leaf : leaves) {
      const index_t stride = strides[leaf];
      if (count_ == next_.size() || stride <= 0 || stride > line_bytes) continue;
      next_[count_++] = {data[leaf] + inner * stride, inner * stride, stride};
    }
  }

  void part(index_t number) const {
    for (std::size_t k = 0; k < count_; ++k) {
      const index_t end = next_[k].bytes * (number + 1) / parts_;
      for (index_t at = next_[k].bytes * number / parts_; at < end; at += line_bytes)
        __builtin_prefetch(next_[k].address + at, 0, 2);
    }
  }

  /// Describes what copy_nontemporally shall prefetch: the elements of the next block from `done`
  /// on. An element of the output has `item` bytes. Returns the number of descriptions.
  std::size_t describe(std::array<parallel::needed_soon, leaves_max>& to, index_t done,
                       index_t item) const {
    for (std::size_t k = 0; k < count_; ++k)
      to[k] = {next_[k].address + done * next_[k].stride, line_bytes * next_[k].stride / item};
    return count_;
  }

 private:
  static constexpr index_t line_bytes = 64;

  struct range {
    const std::byte* address;
    index_t bytes;
    index_t stride;
  };
  std::array<range, leaves_max> next_{};
  std::size_t count_ = 0;
  const index_t parts_;
};

}  // namespace shale::ops
