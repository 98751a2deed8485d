// A compiled pass that serves every small expression of one form.
#pragma once

#include <memory>
#include <vector>

#include "ops/evaluation/expression_form.hpp"
#include "ops/kernels/operations/operations.hpp"
#include "ops/passes/tape.hpp"
#include "parallel/kept/operand_extent.hpp"
#include "parallel/plan/plan.hpp"
#include "shale/executor.hpp"

namespace shale::ops {

/// The tape has the form's constants, in their order.
struct kept_pass {
  /// A tile takes half a kibibyte, and a thread keeps many passes. So tiles are kept only if there
  /// are few. If there are many, finding a tile costs little compared with running it.
  static constexpr index_t tiles_kept_max = 8;

  tape program;
  parallel::plan over;        // over the tape's operands, then positions and states of a reduction
  std::vector<region> tiles;  // of the plan; empty if they are more than `tiles_kept_max`
  std::vector<int> operands;  // for each operand of the tape: the form's operand
  std::vector<parallel::operand_extent> extents;  // of the form's operands

  const reducer* fold = nullptr;  // null unless the pass is a reduction
  double parameter = 0;           // of the reduction

  // The number of results of a reduction that keeps axes, and the steps between their states by
  // axis of the plan. Then the plan has one tile. The number is 0 if the reduction folds all axes.
  index_t kept_results = 0;
  dims state_strides = {};

  /// Calls `body(tile)` for the tiles of the plan, in their order.
  template <class Body>
  void for_each_tile(Body body) const {
    for (const region& tile : tiles) body(tile);
    if (tiles.empty())
      for (index_t number = 0; number < over.tile_count(); ++number) body(over.tile(number));
  }
};

/// Compiles the pass of a form.
/// Returns  null if none can be kept: two indices of its output name one element, its dtype is not
///          that of the reduction's result, it needs much scratch memory, or it is a reduction that
///          keeps axes and has several tiles or an output that is not contiguous
/// Throws   unsupported (more leaves than a plan has operands), bad_alloc
std::unique_ptr<kept_pass> make_kept_pass(const expression_form& form, executor& on);

}  // namespace shale::ops
