// Sums of products of arrays whose axes have names: what `tensordot` and `einsum` are made of.
#pragma once

#include <bitset>

#include "shale/expr.hpp"

namespace shale::ops {

/// Names of axes are numbers below this limit. `einsum` has 52 letters and 32 axes of an ellipsis;
/// `tensordot` has two arrays of 32 axes.
inline constexpr index_t axis_names_max = 96;
using name_set = std::bitset<axis_names_max>;

/// An array whose axes have names, all different. If axes of two arrays have the same name, they
/// have the same extent.
struct named_array {
  expr values;
  dims names;
};

name_set names_of(const named_array& a);

/// The array with its axes in the order of `names`, which are the names of the array.
expr arranged(const named_array& a, const dims& names);

/// Sums over axes in the dtype of `a`: integers wrap, and bool is 'or'.
expr sum_in_dtype(const expr& a, const dims& axes);

/// The sum of the products of elements of two arrays of one shape, over the last `axes` axes.
/// Floats are multiplied and summed in double precision and rounded once; integers wrap; for bool,
/// a product is 'and', and a sum is 'or'.
/// Throws   invalid_argument (dtypes that do not promote, float8)
expr sum_of_products(const expr& a, const expr& b, index_t axes);

/// The array summed over the axes whose names are not kept.
named_array summed(const named_array& a, const name_set& kept);

/// The products of elements of both arrays, summed over the axes whose names are not kept. In the
/// result, names that both arrays have come first, then the other names of `a`, and then those of
/// `b`.
///
/// An axis that only one array has is summed before the product, if its name is not kept. The
/// product is then one batched matrix product: the kept names of both arrays are its batch, their
/// summed names are merged into the inner axis, and the other names into rows and columns. If
/// strides cannot express the merged axes, the evaluation copies the operand. The products are
/// elementwise if nothing is left to be summed, or if neither array has names of its own.
/// Throws   invalid_argument (dtypes, more than rank_max axes)
named_array contracted(const named_array& a, const named_array& b, const name_set& kept);

}  // namespace shale::ops
