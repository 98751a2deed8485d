// Products of arrays of any rank. (linalg.hpp has those of matrices, and einsum.hpp the general sum
// of products.)
// Throws   invalid_argument (extents or axes that do not fit, dtypes that do not promote or have no
//          products), out_of_memory
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The Kronecker product, as NumPy's kron: each element of `a` times the whole of `b`. If one of
/// them has fewer axes, axes of length 1 are added in front.
/// Shape    the product of both extents along each axis; dtype promoted
/// Cost     two nodes of an elementwise expression, in one pass. An operand that is no tensor is
///          first computed as a whole
expr kron(const expr& a, const expr& b);

/// The cross product of vectors of length 3 along `axis`, as NumPy's cross. Axes in front of and
/// behind it are broadcast; complex elements are not conjugated.
/// Cost     an elementwise expression, in one pass. An operand that is no tensor is first computed
///          as a whole
/// Throws   invalid_argument also for bool
expr cross(const expr& a, const expr& b, index_t axis = -1);

}  // namespace shale
