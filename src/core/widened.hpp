// The dtype in which results of small floats are computed.
#pragma once

#include "shale/dtype.hpp"

namespace shale::detail {

/// float32 for float16 and bfloat16, whose results are computed in it as a whole and rounded once.
/// Every other dtype is returned unchanged.
constexpr dtype widened(dtype type) noexcept {
  return type == dtype::float16 || type == dtype::bfloat16 ? dtype::float32 : type;
}

}  // namespace shale::detail
