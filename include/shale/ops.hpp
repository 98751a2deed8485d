// The few operations that write into what they are given; everything else is an expression.
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Stores one value into every element, converted by the rules of `convert`.
/// Cost     one pass of stores, parallel
/// Throws   access_denied, invalid_argument (a broadcast or self-overlapping output), cancelled
void fill(const tensor& out, const scalar& value, executor* on = nullptr);

/// Copies between any two layouts and dtypes; `from` broadcasts to the shape of `to`. Overlap is
/// handled: the result is as if `from` had been copied first.
/// Cost     one pass, parallel; transposed layouts move whole cache lines on both sides
/// Throws   as fill, and out_of_memory where an overlap needs a copy beyond the executor's memory
void copy(const tensor& to, const expr& from, executor* on = nullptr);

/// A new row-major tensor of `value`s.
tensor full_tensor(const dims& shape, const scalar& value, dtype type, executor* on = nullptr);

/// As NumPy's array_equal: same shape, and every element equal as a number of the promoted dtype;
/// NaN equals nothing.
bool equal(const expr& a, const expr& b, executor* on = nullptr);

}  // namespace shale
