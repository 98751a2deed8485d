// What the two ways through an index space share (pass_in_memory.cpp, pass_by_tiles.cpp): states of
// reductions, scratch memory, counting, and the work on one box of a plan.
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <vector>

#include "ops/pass.hpp"
#include "ops/reduction_tree.hpp"
#include "parallel/copy.hpp"
#include "parallel/executor_state.hpp"
#include "parallel/operands.hpp"
#include "parallel/plan.hpp"

namespace shale::ops {

using parallel::loop_operand;
using parallel::plan;
using parallel::plan_operand;

inline constexpr std::size_t state_alignment = 64;

/// The pass's expressions as one tape: outputs are operands 0, 1, …, reduced values stay in
/// registers.
tape compile_pass(const pass& which, const staged_values& staged, executor& on);

/// Of each of a tape's leaves, where it is read tile by tile; null for tensors in memory.
using leaf_sources = std::vector<const detail::source_leaf*>;

/// The states of a pass's reductions for a box of results, one array behind the other.
class states {
 public:
  explicit states(const std::vector<pass_reduction>& reductions) : reductions_(reductions) {
    for (const auto& each : reductions)
      reducers_.push_back(find_reducer(each.which, each.value->type));
  }

  std::size_t count() const noexcept { return reducers_.size(); }
  const reducer& at(std::size_t r) const noexcept { return *reducers_[r]; }

  /// Where the states of reduction `r` begin for a box of `results`.
  std::size_t offset(std::size_t r, index_t results) const noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < r; ++i)
      bytes += *checked_align_up(reducers_[i]->state_bytes * static_cast<std::size_t>(results),
                                 state_alignment);
    return bytes;
  }

  storage make(index_t results, memory_pool& pool) const {
    storage made = storage::allocate(offset(count(), results), &pool);
    for (std::size_t r = 0; r < count(); ++r)
      reducers_[r]->start(made.data() + offset(r, results), results);
    return made;
  }

  void merge(storage& into, const storage& from, index_t results) const {
    for (std::size_t r = 0; r < count(); ++r)
      reducers_[r]->merge(into.data() + offset(r, results), from.data() + offset(r, results),
                          results);
  }

  /// Results of the box `where` of every reduction's output.
  void finish(const storage& from, const region& where, memory_pool& pool) const {
    const index_t results = element_count(where.shape);
    for (std::size_t r = 0; r < count(); ++r) {
      const tensor block = tensor::empty(where.shape, reducers_[r]->result, &pool);
      reducers_[r]->finish(from.data() + offset(r, results), const_cast<std::byte*>(block.data()),
                           results, reductions_[r].parameter);
      tensor target = reductions_[r].into;
      for (index_t axis = 0; axis < where.shape.size(); ++axis)
        target = target.narrow(axis, where.start[axis], where.shape[axis]);
      parallel::copy_elements_here(target, block);
    }
  }

 private:
  const std::vector<pass_reduction>& reductions_;
  std::vector<const reducer*> reducers_;
};

/// The layout of a box of states: row-major over the kept extents, stride 0 along folded axes.
inline layout state_layout(const dims& box, const dims& axes) {
  dims kept = box;
  for (const index_t axis : axes) kept[axis] = std::min<index_t>(kept[axis], 1);
  dims strides = row_major_strides(kept);
  for (index_t axis = 0; axis < box.size(); ++axis)
    if (kept[axis] <= 1) strides[axis] = 0;
  return layout(box, strides, 0);
}

/// Which group of results, and which leaf of its tree, a tile is.
struct tree_place {
  index_t group = 0;
  index_t leaf = 0;
};

/// Per-worker scratch memory, made when a worker first needs it.
class worker_scratch {
 public:
  worker_scratch(std::size_t bytes, executor& on)
      : bytes_(bytes),
        tokens_(on.state().tokens, bytes * static_cast<std::size_t>(on.threads())),
        pool_(on.pool()),
        blocks_(static_cast<std::size_t>(on.threads())) {}

  std::byte* of(int worker) {
    auto& block = blocks_[static_cast<std::size_t>(worker)];
    if (bytes_ > 0 && !block) block = storage::allocate(bytes_, &pool_);
    return block.data();
  }

 private:
  const std::size_t bytes_;
  parallel::held_tokens tokens_;
  memory_pool& pool_;
  std::vector<storage> blocks_;
};

/// Bytes that kernels were really given, counted block by block.
class byte_counter {
 public:
  explicit byte_counter(executor& on) : count_(on.state().count) {}
  ~byte_counter() {
    count_.bytes_read.fetch_add(read_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    count_.bytes_written.fetch_add(written_.load(std::memory_order_relaxed),
                                   std::memory_order_relaxed);
  }
  void add(std::uint64_t read, std::uint64_t written) {
    read_.fetch_add(read, std::memory_order_relaxed);
    written_.fetch_add(written, std::memory_order_relaxed);
  }

 private:
  executor::implementation::counters& count_;
  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<std::uint64_t> written_ = 0;
};

/// Runs the tape over every block of a box of a plan, folding values into `partial`, the states of
/// `results` results.
struct box_work {
  const tape& program;
  const plan& over;
  std::span<std::byte* const> bases;  // outputs, then leaves
  std::byte* scratch;
  // Reductions only.
  const states* folds = nullptr;
  std::byte* partial = nullptr;
  index_t results = 0;
  dims state_strides = {};  // in states, by plan axis
  dims state_start = {};    // the plan coordinates of the first state
  // Generators only: the box's place in the pass's own index space.
  dims origin = {};

  void run(const plan::box& box) const {
    const int n = static_cast<int>(bases.size());
    const index_t r = over.rank();
    dims coordinates = origin;
    over.for_each_block(
        box, bases,
        [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer,
            const parallel::block_position& position) {
          const index_t* start = position.start;
          if (!origin.empty()) {
            for (index_t axis = 0; axis < origin.size(); ++axis)
              coordinates[axis] = origin[axis] + position.start[axis];
            start = coordinates.data();
          }
          program.run(data, strides, n, inner, outer, start, scratch);
          if (!folds) return;
          index_t first = 0;
          for (index_t axis = 0; axis < r; ++axis)
            first += (position.start[axis] - state_start[axis]) * state_strides[axis];
          for (std::size_t k = 0; k < folds->count(); ++k) {
            const reducer& fold = folds->at(k);
            const auto width = static_cast<index_t>(fold.state_bytes);
            const tape::block value = program.value(k, data, strides, n, inner, scratch);
            std::byte* const pointers[2] = {partial + folds->offset(k, results) + first * width,
                                            value.data};
            const index_t steps[4] = {state_strides[r - 1] * width, value.inner_stride,
                                      r >= 2 ? state_strides[r - 2] * width : 0,
                                      value.outer_stride};
            fold.accumulate(pointers, steps, inner, outer);
          }
        });
  }
};

/// Every operand is a strided tensor; one plan cuts the whole space.
void run_in_memory(const pass& which, const tape& program, const staged_values& staged,
                   executor& on);

/// An operand or the output lives in a tile source: its grid cuts the space, each unit of the grid
/// is brought into memory, and a plan of its own cuts it.
void run_by_tiles(const pass& which, const tape& program, const staged_values& staged,
                  const leaf_sources& sources, executor& on);

/// The cut of a pass's index space by its sources: the first sink's grid; else, axis by axis, that
/// of the first leaf that walks it.
dims unit_shape(const pass& which, const leaf_sources& sources);

/// Mapped operands beyond the memory budget that disagree on the fastest axis, with each other or
/// with the tiles of sources, are read and written in balanced tiles. False, and nothing done, for
/// any other pass.
bool run_across_grain(const pass& which, const tape& program, const staged_values& staged,
                      const leaf_sources& sources, executor& on);

}  // namespace shale::ops
