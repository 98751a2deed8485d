// Computes the checksums of a dense array's segments before a commit, and stores them in an extent
// of their own.
#pragma once

#include "array/transaction/state/transaction_state.hpp"
#include "array/transaction/state/written_array.hpp"

namespace shale::arrays {

/// In an updated array, only the segments that were copied are read. If none was copied and the
/// shape is the same, the array stays as it was. Nobody writes the array any more.
/// Cost     reads the bytes that are new, in parallel
/// Throws   io, cancelled, out_of_space, not_found (the catalog has no such array)
void store_checksums(transaction_state& owner, written_array& array);

}  // namespace shale::arrays
