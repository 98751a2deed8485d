// Derivatives by differences of neighbours. (scans.hpp has diff, the differences themselves.)
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The derivative along `axis`, as NumPy's gradient: inside (after - before) / (2 spacing), which
/// is accurate to second order, and at the ends (second - first) / spacing and (last - last but
/// one) / spacing. Integers and bool are converted to float64 before they are subtracted.
/// Shape    that of `a`
/// Cost     an elementwise expression, which reads the operand as `pad` does
/// Throws   invalid_argument (an axis that does not exist or has fewer than two positions, float8),
///          out_of_memory
expr gradient(const expr& a, double spacing = 1, index_t axis = -1);

}  // namespace shale
