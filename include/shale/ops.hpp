// Operations that write into a given tensor, and comparisons of whole tensors.
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Stores one value into every element.
/// Cost     one pass of stores, parallel
/// Throws   as eval_into; invalid_argument (the dtype cannot hold the value, see scalar::to)
void fill(const tensor& out, const scalar& value);

/// Copies between any two layouts and dtypes. `from` broadcasts to the shape of `to`. If both
/// overlap, the result is as if `from` had been copied before.
/// Cost     one pass, parallel. Transposed layouts move whole cache lines on both sides. If `to` is
///          transposed and mapped from a file, and the budget is far below its size, blocks of the
///          file become dirty, and are written to the disk, several times (docs/caveats.md)
/// Throws   as eval_into
void copy(const tensor& to, const expr& from);

/// Whether both have the same shape and equal elements, compared in the promoted dtype; NumPy's
/// array_equal. NaN equals nothing.
/// Cost     one pass, parallel
/// Throws   as eval; invalid_argument (dtypes that do not promote)
bool array_equal(const expr& a, const expr& b);

/// The largest difference that `allclose` accepts: |a - b| <= absolute + relative * |b|.
struct tolerance {
  double relative = 1e-5;
  double absolute = 1e-8;
  bool nan_equals_nan = false;
};

/// Whether every element of `a` is close to that of `b`; NumPy's allclose. Shapes broadcast.
/// Infinities must be equal. Real numbers are compared in float64, complex ones in complex128.
/// Cost     one pass, parallel
/// Throws   as eval; invalid_argument (shapes that do not broadcast)
bool allclose(const expr& a, const expr& b, const tolerance& within = {});

}  // namespace shale
