// Compares the addresses of a small call's operands. The kept plan fixes the layouts, so only
// addresses differ between calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shale/tensor.hpp"

namespace shale::parallel {

/// An operand, and the address of its first element.
struct placed_operand {
  const tensor* values;
  std::byte* address;
};

/// Whether two operands of one shape are the same elements, seen with the same dtype.
inline bool same_view(const placed_operand& a, const placed_operand& b) noexcept {
  return a.address == b.address && a.values->dtype() == b.values->dtype() &&
         a.values->strides() == b.values->strides();
}

/// Whether the bytes belong to this process alone, so that they cannot be lost during a call.
bool is_in_memory(const tensor& values) noexcept;

/// The bytes of an operand, from the address of its first element.
struct operand_extent {
  index_t first;           ///< the lowest byte; may be negative
  index_t last;            ///< one past the highest byte
  std::uint64_t distinct;  ///< the bytes of its elements; broadcast elements count once
  bool written;

  /// Bit k tells whether the operand has the strides and the item size of operand k, if operand k
  /// is written. Bits of operands that are not written are not used.
  std::uint64_t lies_as;
};

/// Fills in everything but `lies_as`. `values` must have at least one element.
operand_extent extent_of(const tensor& values, bool written);

/// Whether written operands share no byte with any other operand. An input that has exactly the
/// elements of an output is allowed.
bool lie_apart(std::span<const placed_operand> operands,
               std::span<const operand_extent> extents) noexcept;

/// The bytes of all operands that are not written, as count_bytes_read_once counts them.
std::uint64_t bytes_read_once(std::span<const placed_operand> operands,
                              std::span<const operand_extent> extents) noexcept;

}  // namespace shale::parallel
