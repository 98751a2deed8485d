// Gives the error that an addition makes, for sums in more digits than those of their type.
#pragma once

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

/// Returns the error of sum = a + b. The result is exact: a + b == sum + error without rounding, if
/// nothing overflows. The method needs no assumption on the sizes of a and b.
/// Source   D. E. Knuth, The Art of Computer Programming 2, section 4.2.2
template <class Number>
inline Number rounding_error(Number a, Number b, Number sum) {
  const Number part = sum - a;
  return (a - (sum - part)) + (b - part);
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
