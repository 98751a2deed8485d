// Declares the function type that the engine calls on a block of elements.
#pragma once

#include <cstddef>

#include "shale/index.hpp"

namespace shale::parallel {

/// Works on a block of `outer` rows of `inner` elements. Operand k of n starts at data[k]. Its
/// neighbours in a row are strides_bytes[k] bytes apart, its rows strides_bytes[n + k] bytes.
/// Operand 0 is the output. Strides may be zero or negative. The block is never empty. If the
/// output shares bytes with an input, each output element shares them only with the input element
/// of the same index.
using kernel = void (*)(std::byte* const* data, const index_t* strides_bytes, index_t inner,
                        index_t outer);

}  // namespace shale::parallel
