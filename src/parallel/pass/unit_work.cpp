#include "parallel/pass/unit_work.hpp"

#include "shale/error.hpp"

namespace shale::parallel {

namespace {

// Makes the plan of one unit whose operands lie at addresses of their own, such as gathered tiles.
// The plan has a single tile if possible, so that kernels get large blocks. `of_pass` are the
// operands of the pass, and `shape` is its index space.
//
// In a pass with states, the order of the elements decides bits. So the plan is made from the
// layouts of the pass's own tensors, and then gets the memory at hand. That is a copy of a tensor
// under one budget, and the tensor itself under another (way.1). A copy need not allow the merges
// that the tensor allows, so axes are not merged then.
plan plan_alone(std::span<const loop_operand> operands, std::span<const loop_operand> of_pass,
                const region& box, const dims& shape, const pass_options& options) {
  std::vector<plan_operand> described;
  described.reserve(operands.size() + 2);
  bool has_tensors = false;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    described.push_back(plan_operand_of(operands[k].values, options));
    if (!options.states || of_pass[k].tiles) continue;
    described.back().where = layout(box.shape, of_pass[k].values.strides(), 0);
    has_tensors = true;
  }
  if (options.states)
    for (const plan_operand& operand : fold_operands(box, shape, options.folded, options.positions))
      described.push_back(operand);
  plan made(described, {.tile_elements = any_number,
                        .block_elements = block_elements_of(options),
                        .keep_axes = options.coordinates,
                        .merge_axes = !has_tensors,
                        .state_elements = any_number});
  for (std::size_t k = 0; has_tensors && k < operands.size(); ++k)
    made.move_operand(static_cast<int>(k), operands[k].values.layout());
  return made;
}

}  // namespace

unit_work::unit_work(const plan& units, std::span<const loop_operand> operands,
                     const pass_options& options, std::size_t written_bytes, unit_body body,
                     executor& on)
    : units_(units),
      operands_(operands),
      options_(options),
      written_bytes_(written_bytes),
      body_(body),
      shape_(index_space(operands, options)),
      count_(state_of(on).count),
      read_(options.counted ? bytes_read_once(operands) : 0, element_count(shape_)),
      stores_(operands, options.can_store_nontemporally, on.threads()),
      scratch_(options.scratch_bytes, on),
      nontemporal_buffers_(stores_.may_be_nontemporal() ? nontemporal_buffer_bytes : 0, on) {
  if (!options.states) return;
  groups_.emplace(units);
  if (options.scans) chain_.emplace(*groups_, *options.states);
  else tree_.emplace(*groups_, *options.states);
}

void unit_work::run(index_t number, int worker, const plan& over,
                    std::span<std::byte* const> bases) {
  const region box = units_.tile(number);
  unit here{number, worker, over, &box, bases, scratch_.of(worker)};
  if (groups_) {
    here.state_strides = groups_->state_strides(box);
    here.state_start = box.start;
  }
  compute(here, box);
}

void unit_work::run_alone(index_t number, int worker, const region& box,
                          std::span<const loop_operand> operands) {
  const plan over = plan_alone(operands, operands_, box, shape_, options_);
  const std::vector<std::byte*> addresses = bases(operands);
  unit here{number, worker, over, nullptr, addresses, scratch_.of(worker)};
  if (options_.coordinates) here.origin = &box.start;
  if (groups_) {
    here.state_strides = over.strides_bytes(over.operands() - 1);
    here.state_start = dims::filled(over.rank(), 0);
  }
  compute(here, units_.tile(number));
}

void unit_work::compute(unit& here, const region& box) {
  const index_t elements = element_count(box.shape);
  const std::size_t written = static_cast<std::size_t>(elements) * written_bytes_;
  if (options_.counted) {
    count_.read(read_.take(elements));
    count_.written(written);
  }
  if (!groups_) {
    return stores_.run(written, [&](store_mode mode) {
      if (mode == store_mode::nontemporal)
        here.nontemporal_buffer = nontemporal_buffers_.of(here.worker);
      body_.run(body_.context, here);
    });
  }
  here.results = groups_->results(box);
  if (chain_) scan(here);
  else fold(here, box);
}

void unit_work::fold(unit& here, const region& box) {
  const storage partial = options_.states->make(here.results);
  here.states = const_cast<std::byte*>(partial.data());
  body_.run(body_.context, here);
  tree_->insert(here.number, box, partial);
}

void unit_work::scan(unit& here) {
  storage own;
  if (chain_->has_successor(here.number)) {
    own = options_.states->make(here.results);
    here.states = const_cast<std::byte*>(own.data());
    body_.run(body_.context, here);
  }
  const storage before = chain_->take(here.number, own, here.results);
  // The unit must end like a failed one, or else what it has not computed would be stored. The loop
  // reports the failure that came first, not this one.
  if (!before) throw error(errc::cancelled, "the pass has failed");
  here.states = const_cast<std::byte*>(before.data());
  here.step = unit_step::scan;
  body_.run(body_.context, here);
}

}  // namespace shale::parallel
