// Sums of products of arrays whose axes have names: what `tensordot` and `einsum` are made of.
#pragma once

#include <bitset>

#include "shale/expr.hpp"

namespace shale::ops {

/// Names of axes are numbers below this: 52 letters and 32 axes of an ellipsis, or two arrays of 32
/// axes.
inline constexpr index_t axis_names_max = 96;
using name_set = std::bitset<axis_names_max>;

/// An array whose axes have different names. Axes of two arrays with one name have one extent.
struct named_array {
  expr values;
  dims names;
};

name_set names_of(const named_array& a);

/// The array with its axes in the order of `names`, which are its own ones.
expr arranged(const named_array& a, const dims& names);

/// Sums over axes in the dtype of `a`: integers wrap, and bool is 'or'.
expr sum_in_dtype(const expr& a, const dims& axes);

/// The sum of the products of elements of two arrays of one shape, over the last `axes` axes. Floats
/// are multiplied and summed in double precision and rounded once; integers wrap; bool: products are
/// 'and', sums are 'or'.
/// Throws   invalid_argument (dtypes that do not promote, float8)
expr sum_of_products(const expr& a, const expr& b, index_t axes);

/// The array summed over the axes whose names are not kept.
named_array summed(const named_array& a, const name_set& kept);

/// The products of elements of both arrays, summed over the axes whose names are not kept. Names that
/// both have, and that are kept, come first; then the other ones of `a`, and those of `b`.
///
/// Axes of one array alone are summed before. If axes of both are summed, the rest is one batched
/// matrix product: names of both that are kept are its batch, and all other axes are merged into rows,
/// columns and the inner axis. An operand is copied, by the evaluation, if strides cannot merge them.
/// If nothing is summed, or one sum is left for each element of the batch, the products are
/// elementwise.
/// Throws   invalid_argument (dtypes, more than rank_max axes)
named_array contracted(const named_array& a, const named_array& b, const name_set& kept);

}  // namespace shale::ops
