// Copies elements from one layout to another on the calling thread. The engine has a parallel copy
// of its own.
#pragma once

#include "shale/tensor.hpp"

namespace shale::detail {

/// Copies every element of `from` to the same index of `to`; shapes and dtypes are equal, and the
/// two do not overlap.
/// Cost     one pass; transposed layouts go through cache-sized blocks
void copy_serially(tensor& to, const tensor& from);

}  // namespace shale::detail
