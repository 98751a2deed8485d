// Copies stored chunks to another array, without decoding them.
//
// Invariants
//   carried.1  the bytes of a chunk are compared with their checksum before they are stored again
//   carried.2  chunks are copied only between arrays whose stored bytes decode to the same
//              elements, and which have the same value where chunks are absent
#pragma once

#include <cstdint>
#include <string>

#include "array/elements/chunk_tiles.hpp"
#include "format/catalog/array_record.hpp"
#include "format/generations/generation_view.hpp"
#include "shale/executor.hpp"

namespace shale::arrays {

/// A chunked array of a generation.
struct stored_array {
  format::generation_view view;
  const format::array_record& record;
  std::string label;  ///< as messages name it: "'dem' in survey.shale"
};

/// Whether both arrays are chunked, and the stored chunks of one are valid chunks of the other, at
/// the same places in the grid (carried.2).
bool stored_alike(const format::array_record& a, const format::array_record& b);

/// Stores all chunks of `from` in `to`. The two arrays are stored alike, and `to` stores no chunk
/// yet.
/// Returns  the number of chunks
/// Throws   corrupt (with array, chunk and byte), io, out_of_space, out_of_memory, cancelled, and
///          as chunk_tiles::store
std::uint64_t carry_chunks(const stored_array& from, chunk_tiles& to, executor& on);

}  // namespace shale::arrays
