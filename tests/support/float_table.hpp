// Rounds by looking up: a table holds every value of a small float format in order, and a number is
// rounded to the nearest value, ties to the even pattern. It shares no code with
// `small_floats.hpp`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "shale/small_floats.hpp"

namespace shale::test {

/// A float format. A `finite_only` format has no infinity, and its only NaN has all exponent and
/// mantissa bits set.
struct float_format {
  int exponent_bits;
  int mantissa_bits;
  bool finite_only;
};

template <class T>
float_format format_of();
template <>
inline float_format format_of<float16>() {
  return {5, 10, false};
}
template <>
inline float_format format_of<bfloat16>() {
  return {8, 7, false};
}
template <>
inline float_format format_of<float8_e4m3fn>() {
  return {4, 3, true};
}
template <>
inline float_format format_of<float8_e5m2>() {
  return {5, 2, false};
}

class float_table {
 public:
  explicit float_table(float_format format) : format_(format) {
    // The table has one entry beyond the largest finite pattern: the value that the format would
    // have there. A number that rounds to it overflows.
    for (std::uint32_t pattern = 0; pattern <= patterns_of_finite(); ++pattern)
      values_.push_back(magnitude(pattern));
  }

  std::uint32_t sign_bit() const { return 1u << (format_.exponent_bits + format_.mantissa_bits); }

  bool is_nan(std::uint32_t pattern) const {
    pattern &= sign_bit() - 1;
    return format_.finite_only ? pattern == sign_bit() - 1 : pattern > patterns_of_finite();
  }

  /// The value of a pattern that is not NaN.
  long double value(std::uint32_t pattern) const {
    const std::uint32_t unsigned_pattern = pattern & (sign_bit() - 1);
    const long double size = !format_.finite_only && unsigned_pattern == patterns_of_finite()
                                 ? std::numeric_limits<long double>::infinity()
                                 : values_[unsigned_pattern];
    return pattern & sign_bit() ? -size : size;
  }

  /// The pattern of the value nearest to `number`, which is not NaN.
  std::uint32_t nearest(long double number) const {
    const std::uint32_t sign = std::signbit(number) ? sign_bit() : 0;
    const long double size = std::fabs(number);
    const auto above = std::lower_bound(values_.begin(), values_.end(), size);
    std::uint32_t pattern = patterns_of_finite();
    if (above != values_.end()) {
      pattern = static_cast<std::uint32_t>(above - values_.begin());
      if (pattern > 0 && *above != size) {
        // The midpoint is exact in double: it has one bit more than its ends.
        const long double middle = (values_[pattern - 1] + values_[pattern]) / 2;
        if (size < middle || (size == middle && pattern % 2 == 1)) --pattern;
      }
    }
    return sign | pattern;  // the overflow pattern is infinity, or NaN in a finite-only format
  }

  /// The finite magnitudes in order, then the one that overflows.
  const std::vector<long double>& magnitudes() const { return values_; }

 private:
  // The number of finite patterns without the sign, which is also the pattern of overflow.
  std::uint32_t patterns_of_finite() const {
    return format_.finite_only ? sign_bit() - 1
                               : ((1u << format_.exponent_bits) - 1) << format_.mantissa_bits;
  }

  long double magnitude(std::uint32_t pattern) const {
    const int bias = (1 << (format_.exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(pattern >> format_.mantissa_bits);
    const long double fraction =
        static_cast<long double>(pattern & ((1u << format_.mantissa_bits) - 1)) /
        static_cast<long double>(1u << format_.mantissa_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias)
                         : std::ldexp(1 + fraction, exponent - bias);
  }

  float_format format_;
  std::vector<long double> values_;
};

template <class T>
const float_table& table_of() {
  static const float_table table(format_of<T>());
  return table;
}

}  // namespace shale::test
