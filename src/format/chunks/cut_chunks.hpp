// Finds the chunks that a smaller shape cuts off or cuts through.
#pragma once

#include <cstdint>
#include <vector>

#include "format/chunks/chunk_entry.hpp"
#include "format/pages/tree.hpp"
#include "shale/dims.hpp"

namespace shale::format {

/// The present chunks of an array that hold elements outside of a new shape, by number.
struct cut_chunks {
  std::vector<numbered_chunk> outside;  ///< they hold no element of the new shape
  std::vector<numbered_chunk> across;   ///< they also hold elements of the new shape
};

/// The chunks of `record` that `shape`, of the same rank, cuts. Axes along which `shape` is not
/// shorter cut nothing.
/// Cost     O(chunks that are cut), and one search of the index for each row of present chunks that
///          lies beside them
/// Throws   corrupt, io
cut_chunks chunks_cut_by(const dims& shape, const tree& index, const array_record& record,
                         std::uint64_t end_of_file);

}  // namespace shale::format
