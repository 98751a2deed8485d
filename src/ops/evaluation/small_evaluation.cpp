#include "ops/evaluation/small_evaluation.hpp"

#include <algorithm>
#include <cstring>

#include "ops/passes/fold_block.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/kept/thread_scratch.hpp"
#include "storage/system/pages.hpp"

namespace shale::ops {

namespace {

// With more additions than this, what a pass costs besides them hardly matters.
constexpr index_t additions_max = index_t{1} << 16;

// The greatest height of a subtree in reduce(), whose stack holds a state for each height from 0
// on. A tree of 2^h tiles has height h, and each tile takes at least one addition.
constexpr std::size_t heights_max = 16;
static_assert(additions_max <= index_t{1} << heights_max);

bool is_small(const dims& shape, index_t additions) noexcept {
  index_t all = std::max<index_t>(additions, 1);
  for (const index_t extent : shape) {
    if (extent == 0 || extent > additions_max) return false;
    all *= extent;
    if (all > additions_max) return false;
  }
  return true;
}

std::size_t state_bytes(const reducer& fold) noexcept {
  return shale::detail::align_up(fold.state_bytes, std::size_t{64});
}

// The bytes for all states that a run needs at once.
std::size_t states_bytes(const kept_pass& pass) noexcept {
  if (!pass.fold) return 0;
  if (pass.kept_results == 0) return state_bytes(*pass.fold) * (heights_max + 1);
  return shale::detail::align_up(
      pass.fold->state_bytes * static_cast<std::size_t>(pass.kept_results), std::size_t{64});
}

}  // namespace

small_evaluation::small_evaluation(const tensor& out, const node_ref& value, executor& on)
    : on_(on), form_(out, value) {
  if (!form_.exists() || !is_small(form_.shape(), form_.additions()) || !out.writable() ||
      !parallel::runs_plainly(on))
    return;
  pass_ =
      parallel::kept_table<kept_pass>::find(form_.key(), [&] { return make_kept_pass(form_, on); });
  if (!pass_) return;
  std::size_t scratch_bytes = pass_->program.scratch_bytes();
  scratch_bytes += states_bytes(*pass_);
  scratch_ = parallel::thread_scratch(scratch_bytes);
  // A reduction reads all elements before it writes.
  const bool apart = pass_->fold || parallel::lie_apart(form_.operands(), pass_->extents);
  if (!scratch_ || !apart) pass_ = {};
}

void small_evaluation::run() {
  const auto constants = form_.constants();
  for (std::size_t k = 0; k < constants.size(); ++k)
    pass_->program.set_constant(k, constants[k].bytes);
  const auto operands = form_.operands();
  std::array<std::byte*, expression_form::operands_max> bases;
  const std::size_t count = pass_->operands.size();
  for (std::size_t k = 0; k < count; ++k)
    bases[k] = operands[static_cast<std::size_t>(pass_->operands[k])].address;
  const std::span<std::byte* const> used(bases.data(), count);
  if (!pass_->fold) compute(used);
  else if (pass_->kept_results == 0) reduce(used);
  else reduce_to_many(used);

  operands[0].values->storage().bump_version();
  auto& counted = parallel::state_of(on_).count;
  counted.pass();
  counted.work(static_cast<std::uint64_t>(pass_->over.tile_count()),
               parallel::bytes_read_once(operands, pass_->extents), pass_->extents[0].distinct);
}

void small_evaluation::compute(std::span<std::byte* const> bases) {
  const tape& program = pass_->program;
  const int count = static_cast<int>(bases.size());
  pass_->for_each_tile([&](const region& tile) {
    pass_->over.for_each_block(
        tile, bases,
        [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer, auto&&) {
          program.run({.data = data,
                       .strides_bytes = strides,
                       .operands = count,
                       .inner = inner,
                       .outer = outer,
                       .scratch = scratch_});
        });
  });
}

// The states of tiles are merged as fold.1 says: a stack holds the states of whole subtrees, the
// largest first. Two subtrees of one height become one. At the end, the smaller ones join the
// larger ones from right to left.
void small_evaluation::reduce(std::span<std::byte* const> bases) {
  const tape& program = pass_->program;
  const reducer& fold = *pass_->fold;
  const std::size_t bytes = state_bytes(fold);
  const auto state = [&](std::size_t number) { return scratch_ + number * bytes; };
  std::byte* const scratch = scratch_ + states_bytes(*pass_);
  const int count = static_cast<int>(bases.size());
  std::size_t used = 0;
  std::size_t done = 0;
  pass_->for_each_tile([&](const region& tile) {
    fold.start(state(used), 1);
    pass_->over.for_each_block(
        tile, bases,
        [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer,
            const parallel::block_position& position) {
          const tape_block block{.data = data,
                                 .strides_bytes = strides,
                                 .operands = count,
                                 .inner = inner,
                                 .outer = outer,
                                 .scratch = scratch};
          program.run(block);
          block_positions positions;
          if (fold.reads_positions) positions = positions_of(pass_->over, count, position.start);
          fold_block(fold, {state(used), 0, 0}, program.value(0, block), positions, inner, outer);
        });
    ++used;
    ++done;
    for (std::size_t joined = done; joined % 2 == 0; joined /= 2, --used)
      fold.merge(state(used - 2), state(used - 1), 1);
  });
  for (; used > 1; --used) fold.merge(state(used - 2), state(used - 1), 1);
  std::array<std::byte, 16> result{};
  fold.finish(state(0), result.data(), 1, pass_->parameter);
  std::memcpy(form_.operands()[0].address, result.data(), pass_->extents[0].distinct);
}

void small_evaluation::reduce_to_many(std::span<std::byte* const> bases) {
  const tape& program = pass_->program;
  const reducer& fold = *pass_->fold;
  const auto width = static_cast<index_t>(fold.state_bytes);
  const dims& steps = pass_->state_strides;
  const index_t rank = steps.size();
  std::byte* const states = scratch_;
  std::byte* const scratch = scratch_ + states_bytes(*pass_);
  const int count = static_cast<int>(bases.size());
  fold.start(states, pass_->kept_results);
  pass_->over.for_each_block(pass_->over.tile(0), bases,
                             [&](std::byte* const* data, const index_t* strides, index_t inner,
                                 index_t outer, const parallel::block_position& position) {
                               const tape_block block{.data = data,
                                                      .strides_bytes = strides,
                                                      .operands = count,
                                                      .inner = inner,
                                                      .outer = outer,
                                                      .scratch = scratch};
                               program.run(block);
                               index_t first = 0;
                               for (index_t axis = 0; axis < rank; ++axis)
                                 first += position.start[axis] * steps[axis];
                               block_positions positions;
                               if (fold.reads_positions)
                                 positions = positions_of(pass_->over, count, position.start);
                               fold_block(fold,
                                          {states + first * width, steps[rank - 1] * width,
                                           rank >= 2 ? steps[rank - 2] * width : 0},
                                          program.value(0, block), positions, inner, outer);
                             });
  fold.finish(states, form_.operands()[0].address, pass_->kept_results, pass_->parameter);
}

}  // namespace shale::ops
