#include "shale/statistics.hpp"

#include <limits>

#include "core/allocating.hpp"
#include "core/widened.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"

namespace shale {

namespace {

using detail::allocating;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Calls `function` with an operand of float16 or bfloat16 converted to float32, and rounds its
// result. Sums and counts may exceed the range of the narrow dtypes.
template <class Function>
expr in_wider_floats(const expr& a, Function function) {
  const dtype type = a.dtype(), wide = detail::widened(type);
  return wide == type ? function(a) : astype(function(astype(a, wide)), type);
}

// `a` with a number in the place of every NaN.
expr without_nan(const expr& a, double number) {
  return is_inexact(a.dtype()) ? where(isnan(a), number, a) : a;
}

// The number of elements that are not NaN, in the dtype of `like`.
expr count_of_numbers(const expr& a, const axes_option& axes, keepdims keep, dtype like) {
  return astype(count_nonzero(logical_not(isnan(a)), axes, keep), like);
}

// The largest elements, or 0 where they are infinite, so that differences from them are numbers.
expr finite_max(const expr& a, const axes_option& axes) {
  const expr largest = max(a, axes, keepdims::yes);
  return where(isfinite(largest), largest, 0);
}

// An operand without elements is its own result. It may have no largest element along the axis.
expr unchanged_along(const expr& a, index_t axis) {
  normalize_axis(axis, a.rank());  // throws if the axis does not exist
  return a;
}

// Exponentials of integers are floats, and so are their sums.
expr as_float(const expr& a) {
  if (kind(a.dtype()) == dtype_kind::complex)
    throw error(errc::invalid_argument, "logsumexp and softmax need real numbers",
                {"got " + std::string(name(a.dtype()))});
  return is_inexact(a.dtype()) ? a : astype(a, exp(a).dtype());
}

expr extremum_of_numbers(const expr& a, const axes_option& axes, keepdims keep, bool largest) {
  const auto extremum = [largest](auto&&... arguments) {
    return largest ? max(arguments...) : min(arguments...);
  };
  if (!is_inexact(a.dtype())) return extremum(a, axes, keep);
  const expr found = extremum(without_nan(a, largest ? -infinity : infinity), axes, keep);
  return where(all(isnan(a), axes, keep), std::numeric_limits<double>::quiet_NaN(), found);
}

// Every NaN is replaced by `last`, which no number comes after in the order. If the extremum is
// `last`, all numbers are equal to `last`. The result is then the position of the first number,
// because an earlier `last` may stand for a NaN.
expr position_of_extremum(const expr& a, std::optional<index_t> axis, keepdims keep, bool largest) {
  const auto position = [&](const expr& of) {
    return largest ? argmax(of, axis, keep) : argmin(of, axis, keep);
  };
  if (!is_inexact(a.dtype())) return position(a);
  const double last = largest ? -infinity : infinity;
  const expr numbers = without_nan(a, last), is_number = logical_not(isnan(a));
  const axes_option axes = axis ? axes_option{*axis} : axes_option{};
  const expr extremum = largest ? max(numbers, axes, keep) : min(numbers, axes, keep);
  const expr first_number = argmax(is_number, axis, keep);
  return where(any(is_number, axes, keep), where(extremum == last, first_number, position(numbers)),
               -1);
}

}  // namespace

expr nansum(const expr& a, const axes_option& axes, keepdims keep) {
  return allocating([&] { return sum(without_nan(a, 0), axes, keep); });
}

expr nanprod(const expr& a, const axes_option& axes, keepdims keep) {
  return allocating([&] { return prod(without_nan(a, 1), axes, keep); });
}

expr nanmean(const expr& a, const axes_option& axes, keepdims keep) {
  return allocating([&] {
    if (!is_inexact(a.dtype())) return mean(a, axes, keep);
    return in_wider_floats(a, [&](const expr& numbers) {
      const expr total = nansum(numbers, axes, keep);
      return total / count_of_numbers(numbers, axes, keep, total.dtype());
    });
  });
}

expr nanmin(const expr& a, const axes_option& axes, keepdims keep) {
  return allocating([&] { return extremum_of_numbers(a, axes, keep, false); });
}

expr nanmax(const expr& a, const axes_option& axes, keepdims keep) {
  return allocating([&] { return extremum_of_numbers(a, axes, keep, true); });
}

expr nanargmin(const expr& a, std::optional<index_t> axis, keepdims keep) {
  return allocating([&] { return position_of_extremum(a, axis, keep, false); });
}

expr nanargmax(const expr& a, std::optional<index_t> axis, keepdims keep) {
  return allocating([&] { return position_of_extremum(a, axis, keep, true); });
}

expr nanvar(const expr& a, const axes_option& axes, keepdims keep, double correction) {
  return allocating([&] {
    if (!is_inexact(a.dtype())) return var(a, axes, keep, correction);
    return in_wider_floats(a, [&](const expr& numbers) {
      // The distance between two infinities is NaN, so the result is then NaN, too. Only elements
      // that are NaN themselves are left out.
      const expr centre = nanmean(numbers, axes, keepdims::yes);
      const expr distance = where(isnan(numbers), 0, numbers - centre);
      const expr squares = sum(square(abs(distance)), axes, keep);
      const expr divisor = count_of_numbers(numbers, axes, keep, squares.dtype()) - correction;
      return where(divisor > 0, squares / divisor, std::numeric_limits<double>::quiet_NaN());
    });
  });
}

expr nanstd(const expr& a, const axes_option& axes, keepdims keep, double correction) {
  return allocating([&] { return sqrt(nanvar(a, axes, keep, correction)); });
}

expr logsumexp(const expr& a, const axes_option& axes, keepdims keep) {
  return allocating([&] {
    return in_wider_floats(as_float(a), [&](const expr& exponents) {
      const expr largest = finite_max(exponents, axes);
      const expr result = log(sum(exp(exponents - largest), axes, keepdims::yes)) + largest;
      return keep == keepdims::yes ? result : result.squeeze(axes.of_rank(a.rank()));
    });
  });
}

expr softmax(const expr& a, index_t axis) {
  return allocating([&] {
    return in_wider_floats(as_float(a), [&](const expr& exponents) {
      if (exponents.size() == 0) return unchanged_along(exponents, axis);
      const expr powers = exp(exponents - finite_max(exponents, {axis}));
      return powers / sum(powers, {axis}, keepdims::yes);
    });
  });
}

expr log_softmax(const expr& a, index_t axis) {
  return allocating([&] {
    return in_wider_floats(as_float(a), [&](const expr& exponents) {
      if (exponents.size() == 0) return unchanged_along(exponents, axis);
      // The difference from the largest element is exact for those near it.
      const expr distance = exponents - finite_max(exponents, {axis});
      return distance - log(sum(exp(distance), {axis}, keepdims::yes));
    });
  });
}

}  // namespace shale
