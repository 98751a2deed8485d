// Distances between vectors.
//
//   expr d = cdist(a, b);          // of each row of a to each row of b
//   expr nearest = argmin(d, 1);   // of the closest row of b
//
// A distance is the norm of a difference, as by vector_norm: with order 2 the Euclidean one, with 1
// the sum of the distances along the axes, with infinity the largest one. Differences are computed
// before they are squared, so that those of close points are as accurate as those of others
// (docs/numerics.md). Integers are converted to floats before they are subtracted; float16 and
// bfloat16 compute in float32, and are rounded once.
// Throws   invalid_argument (shapes that do not fit, a NaN as order, an infinite order where a
//          result is the norm of no elements, dtypes that do not promote, float8), out_of_memory
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The distance of each row of `a` to each row of `b`. Axes in front of the last two are broadcast.
/// Shape    (…, m, n) from (…, m, k) and (…, n, k); real
/// Cost     a reduction over m * n * k differences, of which none is held in memory
/// Throws   invalid_argument also for operands of 32 axes
expr cdist(const expr& a, const expr& b, double order = 2);

/// The distance of two arrays, whose elements together are one vector. They are broadcast.
/// Shape    of rank 0; real
expr dist(const expr& a, const expr& b, double order = 2);

/// `a` with every part whose norm is larger than `norm_max` scaled down to that norm. A part has
/// all elements with one position along `axis`; together they are one vector. A norm whose squares
/// overflow counts as infinite.
/// Shape    that of `a`. Integers give floats, as by `sqrt`
/// Cost     two passes
/// Throws   invalid_argument also for a negative `norm_max`, or a NaN
expr renorm(const expr& a, index_t axis, double norm_max, double order = 2);

}  // namespace shale
