#include "parallel/pass/unit_work.hpp"

namespace shale::parallel {

namespace {

// Makes the plan of one unit whose operands lie at addresses of their own, such as gathered tiles.
// The plan has a single tile if possible, so that kernels get large blocks. `of_pass` are the
// operands of the pass, and `shape` is its index space.
//
// In a pass with states, the order of the elements decides the bits of the result. So the plan is
// made from the layouts of the pass's own tensors, and then moved to the memory at hand. Depending
// on the budget, that memory is a copy of a tensor or the tensor itself (way.1). A copy need not
// allow the merges that the tensor allows, so axes are not merged then.
plan plan_alone(std::span<const loop_operand> operands, std::span<const loop_operand> of_pass,
                const region& box, const dims& shape, const pass_options& options) {
  std::vector<plan_operand> described;
  described.reserve(operands.size() + 2);
  bool has_tensors = false;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    described.push_back(plan_operand_of(operands[k].values, options));
    if (!options.states || of_pass[k].tiles) continue;
    described.back().layout = layout(box.shape, of_pass[k].values.strides(), 0);
    has_tensors = true;
  }
  if (options.states)
    for (const plan_operand& operand : fold_operands(box, shape, options.folded, options.positions))
      described.push_back(operand);
  plan made(described, {.tile_elements = any_number,
                        .block_elements = block_elements_of(options),
                        .whole_tile_blocks = options.whole_tile_blocks,
                        .keep_axes = options.coordinates,
                        .merge_axes = !has_tensors && !options.indices,
                        .state_elements = any_number});
  for (std::size_t k = 0; has_tensors && k < operands.size(); ++k)
    made.move_operand(static_cast<int>(k), operands[k].values.layout());
  return made;
}

// Memory takes about as long for an element as this many additions on each thread.
constexpr index_t light_additions_max = 7;

store_pattern pattern_of(const plan& units, const pass_options& options) {
  if (units.has_square_blocks()) return store_pattern::crossed;
  const bool light = options.additions > 0 && options.additions <= light_additions_max;
  return light ? store_pattern::light : store_pattern::heavy;
}

}  // namespace

unit_work::unit_work(const plan& units, std::span<const loop_operand> operands,
                     const pass_options& options, std::size_t written_bytes, unit_body body,
                     executor& on)
    : units_(units),
      operands_(operands),
      options_(options),
      body_(body),
      shape_(index_space(operands, options)),
      bytes_(state_of(on).count, options.counted ? bytes_read_once(operands) : 0, written_bytes,
             element_count(shape_)),
      stores_(operands, pattern_of(units, options), options.can_store_nontemporally, on.threads()),
      scratch_(options.scratch_bytes, units.tile_count(), on),
      nontemporal_buffers_(stores_.may_be_nontemporal() ? nontemporal_buffer_bytes : 0,
                           units.tile_count(), on) {
  if (options.states) states_.emplace(units, *options.states, options.scans);
}

void unit_work::run(index_t number, int worker, const plan& loop_plan,
                    std::span<std::byte* const> bases) {
  const region box = units_.tile(number);
  unit here{number, worker, loop_plan, &box, bases, scratch_.of(worker)};
  if (states_) {
    here.state_strides = states_->strides(box);
    here.state_start = box.start;
  }
  compute(here, box);
}

void unit_work::run_alone(index_t number, int worker, const region& box,
                          std::span<const loop_operand> operands) {
  const plan loop_plan = plan_alone(operands, operands_, box, shape_, options_);
  const std::vector<std::byte*> addresses = bases(operands);
  unit here{number, worker, loop_plan, nullptr, addresses, scratch_.of(worker)};
  here.operands = operands;
  if (options_.coordinates || options_.indices) here.origin = &box.start;
  if (states_) {
    here.state_strides = loop_plan.strides_bytes(loop_plan.operands() - 1);
    here.state_start = dims::filled(loop_plan.rank(), 0);
  }
  compute(here, units_.tile(number));
}

// A unit that is to write, and the number of bytes that it writes.
struct unit_work::writing {
  unit_work& work;
  unit& here;
  std::size_t bytes;
};

void unit_work::write(void* context, const unit& here) {
  const writing& call = *static_cast<const writing*>(context);
  unit_work& work = call.work;
  work.stores_.run(call.bytes, [&](store_mode mode) {
    if (mode == store_mode::nontemporal)
      call.here.nontemporal_buffer = work.nontemporal_buffers_.of(here.worker);
    work.body_.run(work.body_.context, here);
  });
}

void unit_work::compute(unit& here, const region& box) {
  const index_t elements = element_count(box.shape);
  if (options_.counted) bytes_.count_unit(elements);
  writing call{*this, here, bytes_.written(elements)};
  if (states_) return states_->run(here, box, body_, {&write, &call});
  write(&call, here);
}

}  // namespace shale::parallel
