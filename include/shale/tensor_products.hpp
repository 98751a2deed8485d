// Products of arrays of any rank. (linalg.hpp has those of matrices, and einsum.hpp the general sum
// of products.)
// Throws   invalid_argument (extents or axes that do not fit, dtypes that do not promote or have no
//          products), out_of_memory
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The inner products of vectors along `axis` of both, as the array API's vecdot: the sum of
/// conj(a) * b. The other axes are broadcast.
/// Shape    the broadcast shape without the axis; dtype promoted. Floats are multiplied and summed
///          in double precision or better and rounded once; integers wrap; bool: products are
///          'and', sums are 'or'
/// Cost     a reduction of an elementwise expression
expr vecdot(const expr& a, const expr& b, index_t axis = -1);

/// The sum of products over pairs of axes, as NumPy's tensordot: axis `axes_a[i]` of `a` and axis
/// `axes_b[i]` of `b` have one extent.
/// Shape    the other axes of `a`, then those of `b`; dtype promoted
/// Cost     one `matmul`, for which an operand is copied if its strides do not let the other axes,
///          or the summed ones, be merged. Without pairs, and if no other axes are left, an
///          elementwise expression
expr tensordot(const expr& a, const expr& b, const dims& axes_a, const dims& axes_b);

/// The same over the last `count` axes of `a` and the first ones of `b`, in this order.
expr tensordot(const expr& a, const expr& b, index_t count = 2);

/// The Kronecker product, as NumPy's kron: each element of `a` times the whole of `b`. If one of
/// them has fewer axes, axes of length 1 are added in front.
/// Shape    the product of both extents along each axis; dtype promoted
/// Cost     two nodes of an elementwise expression, in one pass. An operand that is not a tensor is
///          first computed as a whole
expr kron(const expr& a, const expr& b);

/// The cross product of vectors of length 3 along `axis`, as NumPy's cross. Axes in front of and
/// behind it are broadcast; complex elements are not conjugated.
/// Cost     an elementwise expression, in one pass. An operand that is not a tensor is first
///          computed as a whole
/// Throws   invalid_argument also for bool
expr cross(const expr& a, const expr& b, index_t axis = -1);

}  // namespace shale
