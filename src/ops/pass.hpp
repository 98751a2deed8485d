// One traversal of an index space: reads leaves, runs a tape, writes outputs or folds values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/graph.hpp"
#include "ops/tape.hpp"
#include "shale/executor.hpp"

namespace shale::ops {

/// What a pass makes of one expression of its shape.
struct pass_output {
  node_ref value;
  tensor into;                  // of the pass's shape, written in its own dtype; or
  tile_source* sink = nullptr;  // of the pass's shape
};

struct pass_reduction {
  node_ref value;
  reduction which;
  double parameter = 0;
  tensor into;  // row-major; folded axes have length 1
};

/// Outputs, or reductions that all fold `axes`; not both.
struct pass {
  dims shape;
  std::vector<pass_output> outputs;
  std::vector<pass_reduction> reductions;
  dims axes;
};

/// What a pass reads and writes, by the definition of evaluation_plan.
struct pass_cost {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t tiles_decoded = 0;
  std::uint64_t scratch_bytes_per_thread = 0;
  int instructions = 0;
  bool streams = false;
};
pass_cost cost(const pass& which, const staged_values& staged, executor& on);

/// Runs it. `staged` holds what earlier passes computed.
void run(const pass& which, const staged_values& staged, executor& on);

}  // namespace shale::ops
