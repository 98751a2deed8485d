#include "ops/passes/pass.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/saturating.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"
#include "ops/passes/fold_block.hpp"
#include "ops/passes/reduction_states.hpp"
#include "ops/passes/tiles_touched.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/mapped/stored_checksums.hpp"
#include "parallel/pass/pass_loop.hpp"
#include "parallel/pass/prepare.hpp"
#include "parallel/ways/way.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

namespace {

std::vector<parallel::loop_operand> loop_operands(const pass& request) {
  std::vector<parallel::loop_operand> operands;
  operands.reserve(request.operands.size());
  for (const auto& operand : request.operands) {
    if (operand.tiles) operands.push_back(parallel::tiled_operand(*operand.tiles, request.shape));
    else operands.push_back({operand.values, operand.written});
  }
  return operands;
}

// Operands with fewer bytes may be in a cache, so nothing is prefetched.
constexpr std::size_t prefetched_bytes_min = std::size_t{4} << 20;

// The bytes of all operands, as if none were broadcast.
std::uint64_t bytes_of(const pass& request) {
  std::size_t item_bytes = 0;
  for (const pass_operand& operand : request.operands) item_bytes += operand.item_bytes();
  return detail::saturating_mul(static_cast<std::uint64_t>(element_count(request.shape)),
                                item_bytes);
}

// The states of a block's first element, and the bytes between states along its axes.
tape::block_values states_of(const parallel::unit& here, const parallel::block_position& position,
                             const reduction_states& states, std::size_t reduction) {
  const index_t rank = here.over.rank();
  const index_t first = here.state_at(position);
  const auto width = static_cast<index_t>(states.at(reduction).state_bytes);
  return {here.states + states.offset(reduction, here.results) + first * width,
          here.state_strides[rank - 1] * width,
          rank >= 2 ? here.state_strides[rank - 2] * width : 0};
}

// Folds values of a block into the unit's states: those that the tape computes if `computed`, else
// the others. The block's position in the unit selects its first state. If a reduction reads
// positions, the plan has one operand for them, after those of the pass.
void fold_values(const parallel::unit& here, const tape& program, const reduction_states& states,
                 const tape_block& block, const parallel::block_position& position, bool computed) {
  block_positions positions;
  if (states.read_positions()) positions = positions_of(here.over, block.operands, position.start);
  for (std::size_t k = 0; k < states.count(); ++k)
    if (program.computes(k) == computed)
      fold_block(states.at(k), states_of(here, position, states, k), program.value(k, block),
                 positions, block.inner, block.outer);
}

// Whether a reduction folds values that the tape computes; if not `computed`, other values.
bool folds(const tape& program, const reduction_states& states, bool computed) {
  for (std::size_t k = 0; k < states.count(); ++k)
    if (program.computes(k) == computed) return true;
  return false;
}

// Folds those values of a unit that the tape does not compute. The tape does not limit the size of
// their blocks. So their blocks, and the bits of their results, do not depend on what else the tape
// computes.
void fold_operands_of(const parallel::unit& here, const tape& program,
                      const reduction_states& states) {
  const int operands = static_cast<int>(here.bases.size());
  const auto body = [&](std::byte* const* data, const index_t* strides, index_t inner,
                        index_t outer, const parallel::block_position& position) {
    const tape_block block{.data = data,
                           .strides_bytes = strides,
                           .operands = operands,
                           .inner = inner,
                           .outer = outer};
    fold_values(here, program, states, block, position, false);
  };
  if (folds(program, states, true)) here.for_each_block_of(here.over.with_whole_blocks(), body);
  else here.for_each_block(body);
}

// Scans the values of a block, which the tape computes, and writes the results to operand 0. It is
// never inlined, because the buffer of scan_past_the_cache would then be on the stack while any
// kernel runs.
[[gnu::noinline]] void scan_values(const parallel::unit& here, const tape& program,
                                   const reduction_states& states, const scanner& scan,
                                   const tape_block& block,
                                   const parallel::block_position& position) {
  const tape::block_values results{block.data[0], block.strides_bytes[0],
                                   block.strides_bytes[block.operands]};
  const tape::block_values own_states = states_of(here, position, states, 0);
  const tape::block_values values = program.value(0, block);
  if (here.nontemporal_buffer && can_scan_past_the_cache(scan, results, own_states, block.inner))
    return scan_past_the_cache(scan, results, own_states, values, block.inner, block.outer);
  scan_block(scan, results, own_states, values, block.inner, block.outer);
}

// Runs the tape over every block of a unit. For reductions, and in the first step of a scan, folds
// the computed values into the unit's states. In the second step of a scan, writes the results to
// operand 0.
void run_tape(const parallel::unit& here, const tape& program, const reduction_states* states,
              const scanner* scan, bool prefetch) {
  const int operands = static_cast<int>(here.bases.size());
  dims coordinates = here.origin ? *here.origin : dims();
  here.for_each_block([&](std::byte* const* data, const index_t* strides, index_t inner,
                          index_t outer, const parallel::block_position& position) {
    const index_t* start = position.start;
    if (here.origin) {
      for (index_t axis = 0; axis < coordinates.size(); ++axis)
        coordinates[axis] = (*here.origin)[axis] + position.start[axis];
      start = coordinates.data();
    }
    const tape_block block{.data = data,
                           .strides_bytes = strides,
                           .operands = operands,
                           .inner = inner,
                           .outer = outer,
                           .start = start,
                           .scratch = here.scratch};
    program.run(block, {.nontemporal_buffer = here.nontemporal_buffer, .prefetch = prefetch});
    if (!states) return;
    if (here.step == parallel::unit_step::scan)
      return scan_values(here, program, *states, *scan, block, position);
    fold_values(here, program, *states, block, position, true);
  });
}

void run_unit(const parallel::unit& here, const tape& program, const reduction_states* states,
              const scanner* scan, bool prefetch) {
  const bool folded = states && here.step == parallel::unit_step::fold;
  if (!folded || folds(program, *states, true)) run_tape(here, program, states, scan, prefetch);
  if (folded && folds(program, *states, false)) fold_operands_of(here, program, *states);
}

// The address where the memory of the storage's owner begins. It is the same for all slices of one
// owner.
const std::byte* owner_address(const tensor& values) {
  const storage& bytes = values.storage();
  return bytes.data() == nullptr ? nullptr : bytes.data() - bytes.owner_offset();
}

// The bytes of the tensors that generators read (joined or repeated ones). They are not operands of
// the plan. There may be many, and the count takes O(n²) for n storages. So the tensors are sorted
// by owner, and each owner is counted separately.
std::uint64_t gathered_bytes(const tape& program) {
  std::vector<const tensor*> inputs;
  inputs.reserve(program.gathered().size());
  for (const tensor& input : program.gathered()) inputs.push_back(&input);
  std::sort(inputs.begin(), inputs.end(), [](const tensor* a, const tensor* b) {
    return std::less<>()(owner_address(*a), owner_address(*b));
  });
  std::uint64_t bytes = 0;
  std::vector<parallel::loop_operand> of_one_owner;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    of_one_owner.push_back({*inputs[k]});
    if (k + 1 < inputs.size() && owner_address(*inputs[k + 1]) == owner_address(*inputs[k]))
      continue;
    bytes += parallel::bytes_read_once(of_one_owner);
    of_one_owner.clear();
  }
  return bytes;
}

// Runs a pass over an index space without elements. Nothing is read or written, but outputs that
// must not be written are refused as in other passes, and reductions get the results of no values.
void run_empty(const pass& request, executor& on) {
  std::vector<parallel::loop_operand> written;
  for (const auto& operand : request.operands)
    if (operand.written && !operand.tiles) written.push_back({operand.values, true});
  parallel::input_copies none(on);
  parallel::prepare(written, none);
  if (!request.reductions.empty()) reduction_states(request, on.pool()).deliver_empty();
}

// Adds the tiles of sources that a pass decodes, and their bytes.
void add_tiles(pass_cost& to, const pass& request) {
  std::map<const tile_source*, std::vector<axis_map>> views;
  for (const auto& operand : request.operands)
    if (operand.tiles && operand.tiles->source)
      views[operand.tiles->source].push_back(operand.tiles->seen);
  for (const auto& [source, maps] : views) {
    const tile_amount touched = tiles_touched(*source, maps);
    detail::add_saturating(to.tiles_decoded, touched.tiles);
    detail::add_saturating(to.bytes_read,
                           detail::saturating_mul(touched.elements, item_bytes(source->dtype())));
  }
}

// How long an element takes, in additions; 0: unknown.
index_t additions_of(const pass& request) {
  if (request.program.generates()) return 0;
  return request.program.additions() + static_cast<index_t>(request.reductions.size());
}

parallel::pass_options options_of(const pass& request, const reduction_states* states) {
  return {.shape = request.shape,
          .block_elements = request.program.block_elements(),
          .whole_tile_blocks = states == nullptr && request.program.is_copy(),
          .coordinates = request.program.generates(),
          .states = states,
          .folded = request.axes,
          .scans = request.scan.has_value(),
          .positions = request.scan || (states && states->read_positions()),
          .scratch_bytes = request.program.scratch_bytes(),
          .additions = additions_of(request),
          .can_store_nontemporally = states == nullptr || request.scan.has_value()};
}

// The states of a pass that folds values.
std::optional<reduction_states> states_for(const pass& request, const executor& on) {
  if (request.reductions.empty() && !request.scan) return std::nullopt;
  return std::optional<reduction_states>(std::in_place, request, on.pool());
}

// Says how a run reads mapped operands that together exceed half of the budget. It may copy some of
// them. It streams the others, which it uses in place, if these alone still exceed half of the
// budget.
void add_ways(pass_cost& to, const pass& request, std::span<const parallel::loop_operand> operands,
              const executor& on) {
  const std::optional<reduction_states> states = states_for(request, on);
  const auto options = options_of(request, states ? &*states : nullptr);
  const parallel::way chosen = parallel::choose_way(operands, options, on);
  std::vector<parallel::loop_operand> in_place;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (chosen.access_of(k) == parallel::operand_access::copied) to.copies = true;
    else in_place.push_back(operands[k]);
  }
  to.streams = parallel::mapped_exceed_half_of_budget(in_place, on);
}

// Raises the versions of the results when a pass ends. Even if it ends by an exception, a part of
// the results may have been written.
class result_versions {
 public:
  explicit result_versions(const pass& request) : request_(request) {}
  result_versions(const result_versions&) = delete;
  result_versions& operator=(const result_versions&) = delete;
  ~result_versions() {
    for (const pass_reduction& reduction : request_.reductions)
      reduction.into.storage().bump_version();
  }

 private:
  const pass& request_;
};

// Generators read tensors that are no operands of the pass, so the pass does not look at them.
// Throws io if bytes were lost, and unsupported in a forked child that did not inherit them.
void check_gathered(const tape& program) {
  for (const tensor& input : program.gathered()) input.storage().check();
}

// Throws the same for the results of reductions, which may be outputs of the caller.
void check_results(const pass& request) {
  for (const pass_reduction& reduction : request.reductions) reduction.into.storage().check();
}

}  // namespace

void run(const pass& request, executor& on) {
  auto& count = parallel::state_of(on).count;
  count.pass();
  for (const auto& reduction : request.reductions) count.written(reduction.into.size_bytes());
  check_results(request);
  const result_versions bumped(request);
  if (element_count(request.shape) == 0) return run_empty(request, on);
  for (const tensor& input : request.program.gathered()) parallel::compare_checksums(input, on);
  check_gathered(request.program);
  const std::optional<reduction_states> states = states_for(request, on);
  const reduction_states* const folded = states ? &*states : nullptr;
  const bool prefetch = bytes_of(request) >= prefetched_bytes_min;
  parallel::pass_loop loop(loop_operands(request), options_of(request, folded), on);
  const scanner* const scan =
      request.scan ? find_scanner(request.scan->kind, request.scan->type) : nullptr;
  loop.run(
      [&](const parallel::unit& here) { run_unit(here, request.program, folded, scan, prefetch); });
  check_gathered(request.program);
  check_results(request);
  count.read(gathered_bytes(request.program));
}

pass_cost cost(const pass& request, const executor& on) {
  const auto elements = static_cast<std::uint64_t>(element_count(request.shape));
  pass_cost result;
  const std::vector<parallel::loop_operand> operands = loop_operands(request);
  for (const auto& operand : request.operands)
    if (operand.written)
      detail::add_saturating(result.bytes_written,
                             detail::saturating_mul(elements, operand.item_bytes()));
  result.bytes_read =
      detail::saturating_add(parallel::bytes_read_once(operands), gathered_bytes(request.program));
  add_tiles(result, request);
  for (const auto& reduction : request.reductions)
    detail::add_saturating(result.bytes_written, reduction.into.size_bytes());
  result.scratch_bytes_per_thread = request.program.scratch_bytes();
  result.instructions = static_cast<int>(request.program.instruction_count());
  if (parallel::mapped_exceed_half_of_budget(operands, on)) add_ways(result, request, operands, on);
  return result;
}

}  // namespace shale::ops
