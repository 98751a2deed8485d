#include "ops/evaluation/kept_pass.hpp"

#include <algorithm>
#include <utility>

#include "ops/evaluation/compile.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"
#include "parallel/fold/fold.hpp"
#include "parallel/fold/unit_groups.hpp"
#include "parallel/kept/thread_scratch.hpp"

namespace shale::ops {

namespace {

// A pass that needs more is not small.
constexpr std::size_t scratch_bytes_max = parallel::thread_scratch_bytes_max / 2;
constexpr std::size_t state_bytes_max = std::size_t{4} << 10;

// The number of a tensor that the form reads. The output does not count: an input that is the
// output in this call may be another tensor in the next.
int number_of_input(const tensor& values, const expression_form& form) {
  const auto all = form.operands();
  const parallel::placed_operand wanted{&values, values.data()};
  const auto found =
      std::find_if(all.begin() + 1, all.end(), [&](const parallel::placed_operand& operand) {
        return parallel::same_view(operand, wanted);
      });
  return static_cast<int>(found - all.begin());
}

// Whether every call can write the output: no two of its indices name the same element.
bool is_valid_output(const tensor& out) {
  return !out.layout().is_broadcast() && !self_overlaps(out.layout());
}

planned_pass pass_of_form(const expression_form& form) {
  const tensor& out = *form.operands()[0].values;
  planned_pass result{form.shape(), {}, {}, {}};
  if (const auto* reduction = form.reduction()) {
    result.axes = reduction->axes;
    result.reductions.push_back({form.computed(), reduction->kind, reduction->parameter, out});
  } else {
    result.outputs.push_back({form.computed(), out, nullptr});
  }
  return result;
}

parallel::plan plan_of(const pass& compiled, const reducer* fold) {
  std::vector<parallel::plan_operand> operands;
  for (const auto& operand : compiled.operands)
    operands.push_back(
        {layout(operand.values.shape(), operand.values.strides(), 0), operand.item_bytes()});
  if (fold) {
    const region whole{dims::filled(compiled.shape.size(), 0), compiled.shape};
    for (const auto& operand :
         parallel::fold_operands(whole, compiled.shape, compiled.axes, fold->reads_positions))
      operands.push_back(operand);
  }
  const index_t block_elements = compiled.program.block_elements();
  return parallel::plan(operands, {.block_elements = block_elements});
}

// Sets the number and the strides of the states of a reduction that keeps axes. Returns false if no
// such pass is kept: if there are several tiles, if the states are not in the order of the elements
// of a contiguous output, or if the states are too large.
bool place_states(kept_pass& made, const expression_form& form) {
  const tensor& out = *form.operands()[0].values;
  if (made.over.tile_count() != 1 || !out.is_contiguous()) return false;
  const parallel::unit_groups groups(made.over);
  const region tile = made.over.tile(0);
  const layout place = groups.place_of_results(tile);
  made.kept_results = groups.results(tile);
  made.state_strides = groups.state_strides(tile);
  return place.is_contiguous() && place.offset() == 0 &&
         made.fold->state_bytes * static_cast<std::size_t>(made.kept_results) <= scratch_bytes_max;
}

}  // namespace

std::unique_ptr<kept_pass> make_kept_pass(const expression_form& form, executor& on) {
  const tensor& out = *form.operands()[0].values;
  const reducer* fold = nullptr;
  if (const auto* reduction = form.reduction()) {
    fold = find_reducer(reduction->kind, form.computed()->type);
    if (fold->result != out.dtype()) return nullptr;
  } else if (!is_valid_output(out)) {
    return nullptr;
  }
  pass compiled = compile(pass_of_form(form), {}, on);
  if (compiled.program.scratch_bytes() > scratch_bytes_max) return nullptr;
  if (fold && fold->state_bytes > state_bytes_max) return nullptr;
  const bool same_constants =
      std::equal(compiled.program.constants().begin(), compiled.program.constants().end(),
                 form.constants().begin(), form.constants().end(),
                 [](const auto& bytes, const auto& constant) { return bytes == constant.bytes; });
  if (!same_constants) return nullptr;
  std::vector<int> operands;
  for (const auto& operand : compiled.operands)
    operands.push_back(operand.written ? 0 : number_of_input(operand.values, form));
  std::vector<parallel::operand_extent> extents;
  for (const auto& operand : form.operands()) {
    extents.push_back(parallel::extent_of(*operand.values, extents.empty()));
    const bool lies_as_output = operand.values->item_bytes() == out.item_bytes() &&
                                operand.values->strides() == out.strides();
    extents.back().lies_as = lies_as_output ? 1 : 0;
  }
  parallel::plan over = plan_of(compiled, fold);
  std::vector<region> tiles;
  if (over.tile_count() <= kept_pass::tiles_kept_max)
    for (index_t tile = 0; tile < over.tile_count(); ++tile) tiles.push_back(over.tile(tile));
  auto made = std::make_unique<kept_pass>(
      kept_pass{std::move(compiled.program), std::move(over), std::move(tiles), std::move(operands),
                std::move(extents), fold, form.reduction() ? form.reduction()->parameter : 0});
  if (fold && !form.folds_all_axes() && !place_states(*made, form)) return nullptr;
  return made;
}

}  // namespace shale::ops
