// Statistics of expressions along axes: reductions that leave NaN out, and those of exponentials.
// They are made of other expressions, so each takes as many passes as these (see explain).
// Throws   invalid_argument (axes that do not exist or occur twice, dtypes for which the function
//          is not defined), out_of_memory
// Cost     a node for each step; nothing is computed before it is evaluated
#pragma once

#include <optional>

#include "shale/reductions.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The reductions of the elements that are not NaN. Integers are never NaN. If there is no such
/// element, sums are 0, products are 1, and all other results are NaN.
expr nansum(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);
expr nanprod(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);
expr nanmean(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);

/// Not for complex.
/// Throws   invalid_argument also if a folded axis has length 0 and the result has elements
expr nanmin(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);
expr nanmax(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);

/// The index of the smallest or largest element that is not NaN, as `argmin` and `argmax`; -1 if
/// there is none, as in JAX (NumPy throws, but an expression cannot throw for an element). Among
/// equal elements, the first one counts. Not for complex.
/// Throws   invalid_argument also if the axis has length 0 and the result has elements
expr nanargmin(const expr& a, std::optional<index_t> axis = std::nullopt,
               keepdims keep = keepdims::no);
expr nanargmax(const expr& a, std::optional<index_t> axis = std::nullopt,
               keepdims keep = keepdims::no);

/// The sum of squared distances from the mean is divided by n - correction, where n counts the
/// elements that are not NaN. The result is NaN if that divisor is <= 0, or if one of these
/// elements is infinite.
expr nanvar(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no,
            double correction = 0);
expr nanstd(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no,
            double correction = 0);

/// log(sum(exp(a))), without overflow. Integers compute as in `exp`. Not for complex.
/// Throws   invalid_argument also if a folded axis has length 0 and the result has elements
expr logsumexp(const expr& a, const axes_option& axes = {}, keepdims keep = keepdims::no);

/// exp(a) / sum(exp(a)) along an axis, and its logarithm, without overflow. Integers compute as in
/// `exp`. Not for complex.
/// Shape    that of `a`
expr softmax(const expr& a, index_t axis = -1);
expr log_softmax(const expr& a, index_t axis = -1);

}  // namespace shale
