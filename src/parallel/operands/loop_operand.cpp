#include "parallel/operands/loop_operand.hpp"

#include <utility>

#include "parallel/mapped/mapped_bytes.hpp"
#include "parallel/operands/bytes_read_once.hpp"
#include "shale/error.hpp"

namespace shale::parallel {

loop_operand tiled_operand(const tiled_elements& tiles, const dims& shape) {
  const storage nothing = storage::allocate(16);
  const layout none(shape, dims::filled(shape.size(), 0), 0);
  return {.values = tensor(nothing, tiles.dtype(), none),
          .written = tiles.sink != nullptr,
          .tiles = &tiles};
}

void require_output(const tensor& out, const dims& shape) {
  if (out.shape() != shape)
    throw error(errc::invalid_argument, "an output cannot be broadcast",
                {"the output has shape " + to_string(out.shape()) + ", the operands need " +
                 to_string(shape)});
  require_output(out);
}

void require_output(const tensor& out) {
  if (!out.writable())
    throw error(errc::access_denied, "an output's storage is read-only",
                {"write into a clone, or map the file for writing"});
  if (out.layout().is_broadcast())
    throw error(errc::invalid_argument, "an output has a broadcast axis (stride 0)",
                {"its strides are " + to_string(out.strides()) + "; write into a clone"});
  if (self_overlaps(out.layout()))
    throw error(errc::invalid_argument, "an output overlaps itself",
                {"shape " + to_string(out.shape()) + ", strides " + to_string(out.strides()) +
                 ": two indices name one element"});
}

std::uint64_t bytes_read_once(std::span<const loop_operand> operands) noexcept {
  return count_bytes_read_once(
      operands.size(),
      [&](std::size_t k) {
        return !operands[k].written && !operands[k].tiles && operands[k].values.size() > 0;
      },
      [&](std::size_t k) -> const storage& { return operands[k].values.storage(); },
      [&](std::size_t k) -> read_bytes {
        const tensor& values = operands[k].values;
        const auto extent = values.layout().extent();
        const auto item = static_cast<index_t>(values.item_bytes());
        const std::byte* const base = std::as_const(values.storage()).data();
        return {distinct_bytes(values), base + extent->first * item,
                base + (extent->last + 1) * item};
      });
}

bool mapped_exceed_half_of_budget(std::span<const loop_operand> operands, const executor& on) {
  mapped_bytes sum;
  for (const auto& operand : operands)
    if (!operand.tiles && is_mapped(operand.values.storage()) && operand.values.size() > 0)
      sum.add(operand.values.storage(), span_of(operand.values).bytes);
  return sum.exceed_half_of_budget(on);
}

std::vector<std::byte*> bases(std::span<const loop_operand> operands) {
  std::vector<std::byte*> addresses;
  addresses.reserve(operands.size());
  for (const auto& operand : operands)
    addresses.push_back(const_cast<std::byte*>(operand.values.storage().data()));
  return addresses;
}

version_bumps::~version_bumps() {
  for (const auto& operand : operands_)
    if (operand.written && !operand.tiles) operand.values.storage().bump_version();
}

void check_storages(std::span<const loop_operand> operands) {
  for (const auto& operand : operands)
    if (!operand.tiles) operand.values.storage().check();
}

}  // namespace shale::parallel
