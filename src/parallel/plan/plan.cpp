#include "parallel/plan/plan.hpp"

#include <algorithm>
#include <string>

#include "core/grid.hpp"
#include "shale/error.hpp"

namespace shale::parallel {

namespace {

std::span<const plan_operand> checked(std::span<const plan_operand> operands) {
  if (operands.empty())
    throw error(errc::invalid_argument, "a loop needs an operand", {"got none"});
  if (operands.size() > static_cast<std::size_t>(operands_max))
    throw error(
        errc::unsupported, "one pass reads and writes too many different tensors",
        {"at most " + std::to_string(operands_max) + ", got " + std::to_string(operands.size()),
         "evaluate a part of the expression first"});
  return operands;
}

}  // namespace

plan::plan(std::span<const plan_operand> operands, const plan_options& options)
    : axes_(checked(operands)), size_(operands[0].layout.size()) {
  item_bytes_.reserve(operands.size());
  for (const auto& operand : operands) {
    item_bytes_.push_back(operand.item_bytes);
    if (operand.lane_size != 1) lanes_.resize(operands.size(), {.size = 1, .stride_bytes = 0});
  }
  for (std::size_t k = 0; k < lanes_.size(); ++k)
    lanes_[k] = {operands[k].lane_size,
                 operands[k].lane_stride * static_cast<index_t>(operands[k].item_bytes)};
  if (!options.keep_axes) {
    axes_.sort(operands);
    if (options.merge_axes) axes_.merge();
    square_blocks_ = axes_.pair_fastest(operands);
  }
  axes_.ensure_one_axis();
  cuts_ = choose_cuts(axes_, size_, square_blocks_, operands, options);
  make_grid();
}

void plan::make_grid() {
  for (index_t& extent : cuts_.tile) extent = std::max<index_t>(extent, 1);
  grid_ = detail::grid_of(axes_.shape, cuts_.tile);
  tile_count_ = size_ > 0 ? element_count(grid_) : 0;
}

region plan::tile(index_t number) const {
  region result{detail::unravel(number, grid_), cuts_.tile};
  for (index_t axis = 0; axis < rank(); ++axis) {
    result.start[axis] *= cuts_.tile[axis];
    result.shape[axis] = std::min(cuts_.tile[axis], axes_.shape[axis] - result.start[axis]);
  }
  return result;
}

plan plan::retiled(const dims& tile_shape) const {
  plan result = *this;
  result.cuts_.tile = tile_shape;
  result.make_grid();
  return result;
}

plan plan::with_whole_blocks() const {
  plan result = *this;
  result.cuts_.cut_blocks(index_t{1} << 62, square_blocks_);
  return result;
}

void plan::move_operand(int operand, const layout& memory_layout) {
  const auto item = static_cast<index_t>(item_bytes_[operand]);
  dims strides;
  index_t origin = memory_layout.offset();
  for (index_t axis = 0; axis < rank(); ++axis) {
    const index_t own = axes_.own_axes[axis];
    index_t stride = own < 0 || axes_.shape[axis] == 1 ? 0 : memory_layout.strides()[own];
    if (axes_.directions[axis] < 0) {
      origin += stride * std::max<index_t>(axes_.shape[axis] - 1, 0);
      stride = -stride;
    }
    strides.push_back(stride * item);
  }
  move_operand(operand, strides, origin * item);
}

std::pair<index_t, index_t> plan::span_bytes(int operand, const region& box) const noexcept {
  index_t first = axes_.origins[operand];
  index_t last = first;
  for (index_t axis = 0; axis < rank(); ++axis) {
    const index_t stride = axes_.strides[operand][axis];
    const index_t a = box.start[axis] * stride;
    const index_t b = (box.start[axis] + box.shape[axis] - 1) * stride;
    first += std::min(a, b);
    last += std::max(a, b);
  }
  if (!lanes_.empty()) {
    const auto [size, stride] = lanes_[static_cast<std::size_t>(operand)];
    first += std::min<index_t>(0, (size - 1) * stride);
    last += std::max<index_t>(0, (size - 1) * stride);
  }
  return {first, last + static_cast<index_t>(item_bytes_[operand])};
}

plan::touched_elements plan::touched_by(int operand, const region& box) const {
  touched_elements all{box.shape, axes_.strides[operand], span_bytes(operand, box).first};
  if (lanes_.empty()) return all;
  // The lane becomes an axis of its own. It takes the place of an axis of length 1, which the box
  // has if the plan has as many axes as the operands.
  const auto [size, stride] = lanes_[static_cast<std::size_t>(operand)];
  index_t axis = 0;
  while (axis < all.shape.size() && all.shape[axis] != 1) ++axis;
  if (axis == all.shape.size()) {
    all.shape.push_back(size);
    all.strides_bytes.push_back(stride);
  } else {
    all.shape[axis] = size;
    all.strides_bytes[axis] = stride;
  }
  return all;
}

}  // namespace shale::parallel
