// Ranges of bytes of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shale/error.hpp"
#include "shale/index.hpp"

namespace shale::detail {

struct file_extent {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

/// Throws   out_of_memory if the sum is no size_t
inline std::size_t total_bytes(std::span<const file_extent> extents) {
  std::size_t total = 0;
  for (const auto& extent : extents) {
    const auto sum = checked_add(total, extent.bytes);
    if (!sum) throw error(errc::out_of_memory, "the extents overflow the address space");
    total = *sum;
  }
  return total;
}

}  // namespace shale::detail
