// Expressions that are made from numbers alone. None of them holds elements in memory.
// Throws   invalid_argument (negative extents, more than 2^63 - 1 elements, a value that is no
//          dtype), out_of_memory
#pragma once

#include <optional>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The numbers start, start + step, … before stop.
/// Shape    (count); int64 if all three are integers, else float64; or `type`
/// Throws   invalid_argument for a step of 0, a NaN, complex numbers, integers beyond int64, and
///          too many elements (2^63 integers or 2^62 floats)
expr arange(scalar start, scalar stop, scalar step = 1, std::optional<dtype> type = std::nullopt);
expr arange(scalar stop);

/// The same value in every element. Without `type`, the dtype follows from the kind of the value:
/// bool, int64 (uint64 if int64 cannot hold it), float64 or complex128.
/// Throws   invalid_argument (`type` cannot hold the value, see scalar::to; a negative extent)
expr full(const dims& shape, const scalar& value, std::optional<dtype> type = std::nullopt);
expr zeros(const dims& shape, dtype type = dtype::float64);
expr ones(const dims& shape, dtype type = dtype::float64);

/// The same with the shape of `a`, and with its dtype unless `type` is given.
expr full_like(const expr& a, const scalar& value, std::optional<dtype> type = std::nullopt);
expr zeros_like(const expr& a, std::optional<dtype> type = std::nullopt);
expr ones_like(const expr& a, std::optional<dtype> type = std::nullopt);

}  // namespace shale
