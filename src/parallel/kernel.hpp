// What the engine calls on a block of elements.
#pragma once

#include <cstddef>

#include "shale/index.hpp"

namespace shale::parallel {

/// Works on `outer` rows of `inner` elements. Operand k of n starts at data[k]; neighbours in a row
/// are strides_bytes[k] apart, rows strides_bytes[n + k]. Operand 0 is the output. Strides may be
/// zero or negative; the block is never empty; the output overlaps an input only element on
/// element.
using kernel = void (*)(std::byte* const* data, const index_t* strides_bytes, index_t inner,
                        index_t outer);

}  // namespace shale::parallel
