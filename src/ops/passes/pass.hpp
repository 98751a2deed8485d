// Describes and runs one traversal of an index space. A pass reads the leaves of expressions, runs
// a tape of kernels block by block, and either writes outputs or folds values into reductions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/passes/tape.hpp"
#include "parallel/operands/loop_operand.hpp"
#include "shale/executor.hpp"

namespace shale::ops {

/// An operand of the tape: strided elements, or tiles of a source.
struct pass_operand {
  tensor values = {};
  std::optional<parallel::tiled_elements> tiles = std::nullopt;
  bool written = false;

  std::size_t item_bytes() const {
    return tiles ? shale::item_bytes(tiles->dtype()) : values.item_bytes();
  }
};

/// A reduction of values of dtype `type`, which the tape keeps in a register.
struct pass_reduction {
  reduction kind;
  dtype type;
  double parameter = 0;
  tensor into;  // row-major; folded axes have length 1
};

/// A scan of values of dtype `type`, which the tape keeps in a register. The tape does not write
/// the results.
struct pass_scan {
  ops::scan kind;
  dtype type;
};

/// A pass has outputs, or reductions that all fold `axes`, or a scan with one output. A scan goes
/// along the only axis in `axes`.
struct pass {
  dims shape;
  tape program;
  std::vector<pass_operand> operands;  // the outputs, then the leaves, as the tape numbers them
  std::vector<pass_reduction> reductions;
  dims axes;
  std::optional<pass_scan> scan = std::nullopt;
};

/// The amounts that a pass reads and writes, as evaluation_plan defines them.
struct pass_cost {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t tiles_decoded = 0;
  std::uint64_t scratch_bytes_per_thread = 0;
  int instructions = 0;
  bool streams = false;
  bool copies = false;
};
pass_cost cost(const pass& request, const executor& on);

/// Reads the operands once, and writes the outputs or the results of reductions.
/// Throws   io, corrupt, out_of_memory, cancelled, access_denied and invalid_argument (an output),
///          exceptions of tile sources and progress sinks
void run(const pass& request, executor& on);

}  // namespace shale::ops
