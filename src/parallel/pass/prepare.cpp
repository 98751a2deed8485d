#include "parallel/pass/prepare.hpp"

#include <algorithm>
#include <string>

#include "parallel/operands/aliases.hpp"
#include "shale/error.hpp"

namespace shale::parallel {

namespace {

// Replaces an input by a copy if it overlaps the output, unless both have the same element at each
// index. A unit with a halo also reads elements that other units write, so it is replaced then too.
void resolve_overlaps(std::span<loop_operand> operands, std::size_t output, input_copies& copies) {
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const bool both_written = operands[k].written;
    if (k == output || operands[k].tiles) continue;
    if (!both_written && !operands[k].halo &&
        same_elements(operands[output].values, operands[k].values))
      continue;
    if (!may_overlap(operands[output].values, operands[k].values)) continue;
    if (both_written)
      throw error(errc::invalid_argument, "two outputs overlap",
                  {"operands " + std::to_string(output) + " and " + std::to_string(k)});
    operands[k].values = copies.add(operands[k].values);
  }
}

// The axis of the lanes in a tensor, which may have fewer axes than the pass; -1 if it has no such
// axis.
index_t own_axis(const tensor& values, index_t rank, index_t lane_axis) {
  return std::max<index_t>(lane_axis - (rank - values.rank()), -1);
}

// The shape that all operands are broadcast to. It has length 1 along the axis of lanes.
dims common_shape(std::span<const loop_operand> operands, index_t lane_axis) {
  index_t rank = 0;
  for (const auto& operand : operands) rank = std::max(rank, operand.values.rank());
  dims shape;
  for (const auto& operand : operands) {
    dims own = operand.values.shape();
    const index_t along = lane_axis < 0 ? -1 : own_axis(operand.values, rank, lane_axis);
    if (along >= 0) own[along] = 1;
    if (own != shape) shape = broadcast_shapes(shape, own);
  }
  return shape;
}

// The common shape with the operand's own length of lanes.
dims with_lane_of(const tensor& values, dims shape, index_t lane_axis) {
  if (lane_axis < 0) return shape;
  const index_t along = own_axis(values, shape.size(), lane_axis);
  if (along >= 0) shape[lane_axis] = values.shape()[along];
  return shape;
}

}  // namespace

void prepare(std::span<loop_operand> operands, input_copies& copies, index_t lane_axis) {
  const dims shape = common_shape(operands, lane_axis);
  for (auto& operand : operands) {
    if (operand.tiles) continue;
    const dims wanted = with_lane_of(operand.values, shape, lane_axis);
    if (!operand.written) {
      if (operand.values.shape() != wanted) operand.values = operand.values.broadcast_to(wanted);
      continue;
    }
    require_output(operand.values, wanted);
  }
  for (std::size_t o = 0; o < operands.size(); ++o)
    if (operands[o].written && !operands[o].tiles) resolve_overlaps(operands, o, copies);
}

}  // namespace shale::parallel
