// Evaluates expressions. One pass over the operands computes everything that is elementwise. Each
// level of reductions on which the rest depends takes one more pass, and each scan, rolling
// reduction or correlation by Fourier transforms takes a pass of its own. Intermediate values are
// held in blocks of the size of the L1 cache, at most 2 MiB per thread.
//
// Cost     the passes that `explain` lists, in parallel
// Throws   out_of_memory (a result or a reduced intermediate exceeds the pool); io (a mapped file
//          lost bytes, or cannot be read); corrupt (a checksum); cancelled; unsupported (one pass
//          has more than 64 operands: each output counts, and each different view of an input;
//          evaluate a part first); invalid_argument (an expression that was moved from);
//          exceptions of tile sources and progress sinks. invalid_argument and unsupported also if
//          SHALE_ISA cannot be met
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

class expr;
class tile_source;  // shale/tile_source.hpp

/// Computes a value into a new row-major tensor. If the value is a tensor, the result is a copy.
tensor eval(const expr& value);

/// Computes several values in common passes, each into a new tensor.
/// Throws   as eval
std::vector<tensor> eval_all(std::span<const expr> values);

/// Computes a value into `out`. It is converted to the dtype and broadcast to the shape of `out`.
/// If inputs overlap `out`, the result is as if they had been copied before. After an exception,
/// `out` may be partly written.
/// Throws   as eval; access_denied (`out` is read-only), invalid_argument (the shape does not
///          broadcast; `out` is broadcast or overlaps itself), out_of_memory also for the copy of
///          an input that overlaps `out`
void eval_into(const tensor& out, const expr& value);

/// Computes a value tile by tile into a tile source, for example a compressed array. If the value
/// reads `out` at other places than it writes, the whole result is computed into memory first.
/// Throws   as eval; access_denied (`out` is not writable), invalid_argument (the shape does not
///          broadcast)
void eval_into(tile_source& out, const expr& value);

/// The passes that an evaluation takes, and what they read and write. A number of bytes or tiles
/// saturates at the largest value of its type; lazy values may be that large.
struct evaluation_plan {
  int passes = 0;

  /// Operand bytes over all passes. In a pass, a byte of a tensor counts once, even if it is
  /// broadcast or read through several views, and a tile source counts each whole tile once. A tile
  /// that neighbours share is reloaded if the cache (a quarter of what other calls have left of the
  /// budget) has evicted it. Such a reload is not counted. A chunk that is found decoded is counted
  /// all the same (executor::forget_chunks). Of rolling reductions, and of windows by Fourier
  /// transforms, only the results are counted, as tiles of a source. No member counts what they are
  /// computed from. For elements that are read from tile sources at positions (`take`), this is an
  /// upper limit, because the positions are not looked at.
  std::uint64_t bytes_read = 0;
  std::uint64_t tiles_decoded = 0;  ///< tiles of sources, counted like their bytes
  std::uint64_t bytes_written = 0;  ///< bytes of results and of reduced intermediates
  std::uint64_t scratch_bytes_per_thread = 0;

  /// The most bytes of intermediate results that are held as a whole at the same time: reductions,
  /// scans, rolling reductions, products, elements of tile sources at positions, and computed
  /// operands of products, reshapes, `take` and `concat`. The budget does not include them. Each is
  /// released when all its readers are computed.
  std::uint64_t staged_bytes_max = 0;

  int instructions = 0;  ///< kernel calls for a block, over all passes
  /// The mapped operands that a pass uses in place exceed half of the budget: it reads them in
  /// windows.
  bool streams = false;
  /// The mapped operands of a pass exceed half of the budget, and it copies large ones into memory
  /// part by part, because it visits one of them against its storage order, or beside tiles. It may
  /// stream others, because private mappings are never copied.
  bool copies = false;
  std::string text;  ///< a description for people, one line for each pass
};

/// The plan that `eval` would follow. It computes nothing.
/// Cost     O(size of the expression), times the number of reductions that read each other, and
///          counting the tiles of sources
/// Throws   out_of_memory, unsupported (more than 64 operands in a pass), invalid_argument (an
///          expression that was moved from)
evaluation_plan explain(const expr& value);

}  // namespace shale
