// What functions that take indices have in common.
#pragma once

#include "shale/expr.hpp"

namespace shale::ops {

/// The indices as int64. A uint64 that int64 cannot hold stays out of range.
/// Throws   invalid_argument (no integer dtype), naming `function`
expr as_positions(const expr& indices, const char* function);

/// Throws   invalid_argument, with the index, the axis and its extent
[[noreturn]] void throw_index_out_of_range(index_t index, index_t axis, index_t extent);

}  // namespace shale::ops
