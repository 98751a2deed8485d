#include "parallel/pass/small_apply.hpp"

#include "parallel/executor/executor_state.hpp"

namespace shale::parallel {

namespace {

// Larger calls are cut into several tiles.
constexpr index_t elements_max = index_t{1} << 13;

std::uint64_t describe(const detail::apply_operand& operand) noexcept {
  return static_cast<std::uint64_t>(operand.values.dtype()) | (operand.written ? 1U << 8 : 0U) |
         static_cast<std::uint64_t>(operand.values.rank()) << 16;
}

// The loop over the broadcast operands; null if it does not have exactly one tile, or if an output
// could not be written.
std::unique_ptr<small_loop> make_loop(std::span<const detail::apply_operand> operands) {
  dims shape;
  for (const auto& operand : operands) shape = broadcast_shapes(shape, operand.values.shape());
  if (element_count(shape) == 0 || element_count(shape) > elements_max) return nullptr;
  std::vector<plan_operand> planned;
  std::vector<tensor> seen;
  for (const auto& operand : operands) {
    const layout& own = operand.values.layout();
    if (operand.written && (own.shape() != shape || own.is_broadcast() || self_overlaps(own)))
      return nullptr;
    seen.push_back(operand.values.broadcast_to(shape));
    planned.push_back({layout(shape, seen.back().strides(), 0), operand.values.item_bytes()});
  }
  plan loop_plan(planned);
  if (loop_plan.tile_count() != 1) return nullptr;
  std::vector<operand_extent> extents;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    extents.push_back(extent_of(seen[k], operands[k].written));
    for (std::size_t other = 0; other < operands.size(); ++other)
      if (seen[other].strides() == seen[k].strides() &&
          seen[other].item_bytes() == seen[k].item_bytes())
        extents[k].lies_as |= std::uint64_t{1} << other;
  }
  const region tile = loop_plan.tile(0);
  return std::make_unique<small_loop>(small_loop{std::move(loop_plan), tile, std::move(extents)});
}

}  // namespace

small_apply::small_apply(std::span<const detail::apply_operand> operands, executor& on)
    : on_(on), used_(operands.size()) {
  if (!runs_plainly(on)) return;
  form_key key;
  for (std::size_t k = 0; k < used_; ++k) {
    const auto& operand = operands[k];
    if (operand.values.dtype() != operand.type || !is_in_memory(operand.values) ||
        (operand.written && !operand.values.writable()))
      return;
    operands_[k] = {&operand.values, operand.values.data()};
    key.add(describe(operand));
    key.add(operand.values.shape());
    key.add(operand.values.strides());
  }
  loop_ = kept_table<small_loop>::find(key, [&] { return make_loop(operands); });
  if (loop_ && !lie_apart(this->operands(), loop_->extents)) loop_ = {};
}

void small_apply::bump_versions() const noexcept {
  for (std::size_t k = 0; k < used_; ++k)
    if (loop_->extents[k].written) operands_[k].values->storage().bump_version();
}

void small_apply::count() const noexcept {
  auto& counted = state_of(on_).count;
  std::uint64_t written = 0;
  for (const auto& extent : loop_->extents)
    if (extent.written) written += extent.distinct;
  counted.work(1, bytes_read_once(operands(), loop_->extents), written);
}

}  // namespace shale::parallel
