// What every engine call checks before it touches an element: shapes broadcast, outputs may be
// written, and inputs that overlap an output under another layout are read as they were before.
#pragma once

#include <span>
#include <vector>

#include "parallel/plan.hpp"
#include "parallel/streaming.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

struct loop_operand {
  tensor values;
  bool written = false;
};

/// Broadcasts all operands to one shape, checks the written ones, and replaces inputs that overlap
/// a written operand other than element on element by copies from the executor's pool.
/// Throws   invalid_argument (shapes; an output that broadcasts, or overlaps itself or another
///          output), access_denied, out_of_memory (naming the bytes of a copy that does not fit),
///          io
void prepare(std::span<loop_operand> operands, executor& on);

/// Whether every index names the very same bytes in both.
bool same_elements(const tensor& a, const tensor& b);

/// Whether the elements of two tensors share a byte; errs to true where that is hard to say.
bool may_overlap(const tensor& a, const tensor& b);

/// The same elements in fresh memory of the executor's pool; what is broadcast stays so.
/// Throws   out_of_memory naming the bytes if the copy exceeds the budget
tensor copied(const tensor& values, executor& on);

/// A plan over prepared operands.
plan make_plan(std::span<const loop_operand> operands, const plan_options& options = {});

/// The addresses that a plan's positions count from.
std::vector<std::byte*> bases(std::span<const loop_operand> operands);

/// The operands as streaming sees them.
std::vector<streamed_operand> streamed(std::span<const loop_operand> operands);

/// After the work: counts a write on each output's storage and throws `io` if a mapped file lost
/// bytes meanwhile.
void conclude(std::span<loop_operand> operands);

/// Runs `body(data, strides_bytes, inner, outer, position, tile, worker)` for every block of every
/// tile of the plan, in parallel, streaming as `which` says; `progress_bytes` as in loop_options.
template <class Body>
void for_each_block(const plan& over, std::span<const loop_operand> operands, executor& on,
                    Body&& body, std::uint64_t progress_bytes = 0,
                    streams_if which = streams_if::larger_than_the_budget);

}  // namespace shale::parallel

#include "parallel/tile_loop.hpp"

namespace shale::parallel {

template <class Body>
void for_each_block(const plan& over, std::span<const loop_operand> operands, executor& on,
                    Body&& body, std::uint64_t progress_bytes, streams_if which) {
  const auto addresses = bases(operands);
  window_walk walk(over, streamed(operands), on, which);
  for_each_tile(on, over.tile_count(),
                [&](index_t tile, int worker) {
                  window_walk::tile_visit visit(walk, tile);
                  over.for_each_block(
                      over.tile(tile), addresses,
                      [&](std::byte* const* data, const index_t* strides, index_t inner,
                          index_t outer, const block_position& position) {
                        body(data, strides, inner, outer, position, tile, worker);
                      });
                  visit.end();
                },
                {.most_workers = walk.workers_max(), .progress_bytes = progress_bytes});
  walk.finish();
}

}  // namespace shale::parallel
