// The stage `delta`: each element becomes its difference from the one before, modulo 2^bits.
#pragma once

#include <cstddef>

#include "format/bytes/types.hpp"

namespace shale::format {

/// `to` has the size of `from`, and may be `from`. The first element stays.
void take_differences(bytes_view from, std::size_t item_bytes, bytes_span to) noexcept;

/// The inverse, in place.
void sum_differences(bytes_span elements, std::size_t item_bytes) noexcept;

}  // namespace shale::format
