#include "parallel/ways/copied_operands.hpp"

#include <algorithm>

#include "core/grid.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/operands/aliases.hpp"
#include "parallel/ways/haloed_box.hpp"
#include "tensor/parts.hpp"

namespace shale::parallel {

namespace {

// The operand's elements as a tensor in the axes of a plan: merged, reordered and reversed as
// there. A plan over lanes has the operand's own axes.
tensor in_plan_axes(const plan& loop_plan, std::size_t operand, const tensor& values,
                    index_t lane_axis) {
  if (lane_axis >= 0) return values;
  const auto item = static_cast<index_t>(values.item_bytes());
  const int number = static_cast<int>(operand);
  dims strides = loop_plan.strides_bytes(number);
  for (index_t& stride : strides) stride /= item;
  return tensor(values.storage(), values.dtype(),
                layout(loop_plan.shape(), strides, loop_plan.origin_bytes(number) / item));
}

}  // namespace

copied_operands::copied_operands(const way& chosen, std::span<const loop_operand> operands,
                                 const pass_options& options, executor& on)
    : loads_(chosen.load_plan()), operands_(operands), lane_axis_(options.lane_axis), on_(on) {
  // Outputs are added first: an input that has exactly the elements of an output shares the
  // output's copy.
  for (const bool written : {true, false})
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (chosen.access_of(k) == operand_access::copied && operands[k].written == written) add(k);
}

void copied_operands::add(std::size_t number) {
  const loop_operand& operand = operands_[number];
  const tensor& values = operand.values;
  for (copied_operand& other : copied_) {
    const loop_operand& candidate = operands_[other.number];
    if (operand.halo || candidate.halo || candidate.values.dtype() != values.dtype() ||
        !same_elements(candidate.values, values))
      continue;
    other.sharers.push_back(number);
    other.read = true;
    return;
  }
  const tensor distinct = detail::without_repeats(in_plan_axes(loads_, number, values, lane_axis_));
  dims tile_shape = loads_.tile_shape();
  if (lane_axis_ >= 0) tile_shape[lane_axis_] = values.shape()[lane_axis_];
  for (index_t axis = 0; axis < distinct.rank(); ++axis)
    tile_shape[axis] = std::min(tile_shape[axis], distinct.shape()[axis]);
  copied_.push_back(
      {.number = number,
       .tiles = std::make_unique<mapped_tiles>(distinct, tile_shape, on_.checksums(), on_.pool()),
       .shape_without_repeats = distinct.shape(),
       .written = operand.written,
       .read = !operand.written || operand.updated});
  if (operand.halo) return;
  const index_t lane = lane_axis_ < 0 ? 1 : values.shape()[lane_axis_];
  bytes_per_position_ += values.item_bytes() * static_cast<std::size_t>(lane);
}

dims copied_operands::tile_of(const copied_operand& operand, index_t load) const {
  dims tile = detail::unravel(load, loads_.grid());
  for (index_t axis = 0; axis < tile.size(); ++axis)
    if (operand.shape_without_repeats[axis] == 1) tile[axis] = 0;
  return tile;
}

void copied_operands::prefetch(index_t load) const noexcept {
  for (const auto& operand : copied_)
    if (operand.read) operand.tiles->prefetch(tile_of(operand, load));
}

// Makes the lane axis contiguous in every copy, whatever the load's shape: `pass_loop::lane_stride`
// has told the kernels one stride for all loads.
tensor copied_operands::make_room(const copied_operand& operand, const dims& shape) const {
  const dtype type = operands_[operand.number].values.dtype();
  if (lane_axis_ < 0) return tensor::empty(shape, type, &on_.pool());
  dims turned = shape;
  turned.erase(lane_axis_);
  turned.push_back(shape[lane_axis_]);
  return tensor::empty(turned, type, &on_.pool()).moveaxis(-1, lane_axis_);
}

tensor copied_operands::read_load(const copied_operand& operand, index_t load) const {
  dims all = loads_.tile(load).shape;
  if (lane_axis_ >= 0) all[lane_axis_] = operands_[operand.number].values.shape()[lane_axis_];
  dims shape = all;
  for (index_t axis = 0; axis < shape.size(); ++axis)
    shape[axis] = std::min(shape[axis], operand.shape_without_repeats[axis]);
  const tensor room = make_room(operand, shape);
  if (operand.read) {
    operand.tiles->load(tile_of(operand, load), room);
    state_of(on_).count.mapped_tile();
  }
  return room.broadcast_to(all);
}

// Copies boxes of one operand, which may be larger than a load.
class copied_operands::reader final : public box_reader {
 public:
  reader(const copied_operand& operand, dtype type, memory_pool& pool) noexcept
      : operand_(operand), type_(type), pool_(pool) {}

  tensor read(const region& box) const override {
    const region once = without_repeats(box);
    const tensor room = tensor::empty(once.shape, type_, &pool_);
    operand_.tiles->load_box(once, room);
    return room.broadcast_to(box.shape);
  }

  void read_into(const region& box, const tensor& into) const override {
    if (without_repeats(box) == box) operand_.tiles->load_box(box, into);
    else copy_elements_here(into, read(box));
  }

 private:
  // The box in the axes of the copied elements, in which broadcast axes have length 1.
  region without_repeats(region box) const {
    for (index_t axis = 0; axis < box.shape.size(); ++axis) {
      if (operand_.shape_without_repeats[axis] != 1) continue;
      box.start[axis] = 0;
      box.shape[axis] = 1;
    }
    return box;
  }

  const copied_operand& operand_;
  const dtype type_;
  memory_pool& pool_;
};

tensor copied_operands::read_haloed(const copied_operand& operand, index_t load) const {
  const loop_operand& all = operands_[operand.number];
  const dtype type = all.values.dtype();
  state_of(on_).count.mapped_tile();
  return haloed_box(*all.halo, loads_.tile(load), all.values.shape(), type,
                    reader(operand, type, on_.pool()), on_);
}

copied_operands::copies copied_operands::read(index_t load) const {
  copies result(operands_.size());
  for (const auto& operand : copied_) {
    const bool haloed = operands_[operand.number].halo != nullptr;
    result[operand.number] = haloed ? read_haloed(operand, load) : read_load(operand, load);
    for (const std::size_t k : operand.sharers) result[k] = result[operand.number];
  }
  return result;
}

void copied_operands::write(index_t load, const copies& from) {
  for (const auto& operand : copied_)
    if (operand.written) operand.tiles->store(tile_of(operand, load), from[operand.number]);
}

void copied_operands::finish() {
  for (const auto& operand : copied_)
    if (operand.written) operand.tiles->finish();
}

}  // namespace shale::parallel
