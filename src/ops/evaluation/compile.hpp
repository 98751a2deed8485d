// Compiles the expressions of one pass to a tape. The invariants of tapes, tape.1 to tape.4, are in
// ops/passes/tape.hpp.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ops/graph/graph.hpp"
#include "ops/passes/pass.hpp"
#include "shale/executor.hpp"

namespace shale::ops {

/// The results of the stages that have been computed.
using staged_values = std::map<const detail::stage*, tensor>;

/// The elements of a tensor leaf, or of a staged leaf whose stage has been computed.
tensor tensor_of(const node& leaf, const staged_values& staged);

/// Whether a pass reads the node as an operand: its elements are those of a tensor, of a stage or
/// of a tile source.
bool reads_operand(const node& value) noexcept;

/// The operand for such a node.
pass_operand operand_of(const node& leaf, const staged_values& staged);

/// A value of the pass's shape, and the tensor or the sink that it is written to.
struct wanted_output {
  node_ref value;
  tensor target;                // not used if there is a sink; the value is converted to its dtype
  tile_source* sink = nullptr;  // has the pass's shape
};

/// A value of the pass's shape, and the reduction that it is folded by.
struct wanted_reduction {
  node_ref value;
  reduction kind;
  double parameter = 0;
  tensor target;
};

/// A value of the pass's shape that is scanned, and where the results are written.
struct wanted_scan {
  scan kind;
  wanted_output output;
};

/// A pass before it is compiled. It has outputs, or reductions that all fold `axes`, or a scan. A
/// scan goes along the only axis in `axes`.
struct planned_pass {
  dims shape;
  std::vector<wanted_output> outputs;
  std::vector<wanted_reduction> reductions;
  dims axes;
  std::optional<wanted_scan> scan = std::nullopt;
};

/// Compiles all expressions of a pass to one tape. Outputs are operands 0, 1, …; the values that
/// reductions fold stay in registers. `prepare` copies operands that overlap an output. It does not
/// see the inputs of generators, so those are copied here. `staged` has the results of earlier
/// passes.
/// Throws   unsupported (more leaves than a plan has operands), out_of_memory, io (an input of
///          `concat` or of another generator, if it is copied)
pass compile(const planned_pass& planned, const staged_values& staged, executor& on);

}  // namespace shale::ops
