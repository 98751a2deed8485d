// Copies a chunked array, which may be larger than memory, into chunks of another shape.
#pragma once

#include <cstdint>

#include "shale/array.hpp"
#include "shale/dims.hpp"
#include "shale/writable_array.hpp"

namespace [[gnu::visibility("default")]] shale {

/// How `rechunk` copies an array. Each new chunk is encoded once.
struct rechunk_plan {
  /// With 1 pass, blocks of new chunks are read and stored, one after the other. With 2 passes, the
  /// elements are first written to a file without a name, in which each block is contiguous. Then
  /// each old chunk is decoded only once.
  int passes = 1;

  /// The shape of a block of new chunks that are stored together. Along each axis, a block has
  /// whole chunks, or the extent of the array.
  dims block_shape;

  /// With two passes, the shape of a block of old chunks that are decoded together.
  dims read_shape;

  /// Numbers of chunks. Absent chunks count too. With one pass, an old chunk that lies in several
  /// blocks is decoded for each of them, or fewer times if it was still kept decoded.
  std::uint64_t chunks_decoded = 0;
  std::uint64_t chunks_encoded = 0;

  /// Bytes of elements that are written to the file without a name, and read from it.
  std::uint64_t scratch_bytes = 0;
};

/// Makes the plan for the executor's memory budget. It has one pass if old chunks are then decoded
/// at most twice on average, otherwise two. Blocks take about an eighth of the budget, or one
/// chunk.
/// Cost     O(rank^4 * log(elements of a block)); reads no element
/// Throws   invalid_argument (a dense array; a chunk shape of another rank, or with an extent below
///          1), out_of_memory
rechunk_plan plan_rechunk(const array& from, const dims& chunk_shape);

/// Copies all elements of `from` into `to`, which has the same shape, by the plan for the chunk
/// shape of `to`. The elements are converted to the dtype of `to`. Either a commit contains all of
/// them, or the copy throws.
///
///    transaction change = file.begin();
///    const array rows = file.latest().at("rows");
///    const array_spec columns{.dtype = rows.dtype(),
///                             .shape = rows.shape(),
///                             .kind = array_kind::chunked,
///                             .chunk_shape = dims{rows.shape()[0], 1}};
///    rechunk(rows, change.create("columns", columns));
///    change.commit();
///
/// `to` may take the name of `from` (`create_or_replace`) if `from` is of a snapshot, or if the
/// transaction has neither updated nor made it. Otherwise the elements of `from` are removed with
/// the old array.
/// Cost     as the plan says. The file without a name lies in the folder that TMPDIR names, or in
///          /var/tmp. Each block is reported as passes of its own (progress_sink)
/// Throws   as plan_rechunk, array::read and writable_array::write; invalid_argument also for other
///          shapes, and if `from` is the array that is written; out_of_space and io also for the
///          file without a name. A part of the elements may be stored then
rechunk_plan rechunk(const array& from, const writable_array& to);

}  // namespace shale
