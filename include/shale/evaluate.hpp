// Evaluating expressions. One pass over the operands computes everything elementwise, and one more
// each level of reductions that the rest depends on; intermediate values live in L1-sized blocks,
// at most 2 MiB a thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shale/executor.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace [[gnu::visibility("default")]] shale {

class expr;

/// Computes into a new row-major tensor. A tensor leaf comes back as a copy.
/// Throws   out_of_memory (result or reduced intermediate beyond the pool), io, corrupt, cancelled
tensor eval(const expr& value, executor* on = nullptr);

/// Computes several in common passes.
std::vector<tensor> eval_all(std::span<const expr> values, executor* on = nullptr);

/// Computes into `out`, converting to its dtype; the value's shape must broadcast to it. Inputs
/// that overlap `out` are read as they were before. Throws   also access_denied, and
/// invalid_argument for a broadcast or self-overlapping output
void eval_into(const tensor& out, const expr& value, executor* on = nullptr);

/// Computes tile by tile into a source, for example a compressed array.
void eval_into(tile_source& out, const expr& value, executor* on = nullptr);

/// What an evaluation would do.
struct evaluation_plan {
  int passes = 0;

  /// Operand bytes over all passes: elements of tensors as often as they are used; of tile sources
  /// whole tiles, each once a pass. Those that neighbours need again are loaded again where a
  /// quarter of the budget does not hold them.
  std::uint64_t bytes_read = 0;
  std::uint64_t tiles_decoded = 0;  ///< tiles of sources, counted like their bytes
  std::uint64_t bytes_written = 0;  ///< result bytes, reduced intermediates included
  std::uint64_t scratch_bytes_per_thread = 0;

  /// Results of folds and products, and operands that these need in memory, held at once: whole, and
  /// beside the budget. Each is let go when all that reads it is computed.
  std::uint64_t staged_bytes_max = 0;

  int instructions = 0;  ///< kernel calls a block, over all passes
  bool streams = false;  ///< operands exceed the budget: windows are read ahead and dropped behind
  std::string text;      ///< the same for people, a line a pass
};

/// Plans as `eval` would, and computes nothing.
evaluation_plan explain(const expr& value, executor* on = nullptr);

}  // namespace shale
