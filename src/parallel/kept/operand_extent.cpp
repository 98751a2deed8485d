#include "parallel/kept/operand_extent.hpp"

#include "parallel/operands/bytes_read_once.hpp"

namespace shale::parallel {

bool is_in_memory(const tensor& values) noexcept {
  const storage_kind kind = values.storage().kind();
  return kind == storage_kind::heap || kind == storage_kind::adopted;
}

operand_extent extent_of(const tensor& values, bool written) {
  const auto extent = layout(values.shape(), values.strides(), 0).extent();
  const auto item = static_cast<index_t>(values.item_bytes());
  return {extent->first * item, (extent->last + 1) * item, distinct_bytes(values), written, 0};
}

bool lie_apart(std::span<const placed_operand> operands,
               std::span<const operand_extent> extents) noexcept {
  for (std::size_t out = 0; out < operands.size(); ++out) {
    if (!extents[out].written) continue;
    const std::byte* const written = operands[out].address;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (k == out) continue;
      const std::byte* const other = operands[k].address;
      const bool same = other == written && (extents[k].lies_as >> out & 1) != 0;
      if (same && !extents[k].written) continue;
      if (other + extents[k].first < written + extents[out].last &&
          written + extents[out].first < other + extents[k].last)
        return false;
    }
  }
  return true;
}

std::uint64_t bytes_read_once(std::span<const placed_operand> operands,
                              std::span<const operand_extent> extents) noexcept {
  return count_bytes_read_once(
      operands.size(), [&](std::size_t k) { return !extents[k].written; },
      [&](std::size_t k) -> const storage& { return operands[k].values->storage(); },
      [&](std::size_t k) -> read_bytes {
        return {extents[k].distinct, operands[k].address + extents[k].first,
                operands[k].address + extents[k].last};
      });
}

}  // namespace shale::parallel
