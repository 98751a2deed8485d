#include "shale/scalar.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <utility>

#include "shale/error.hpp"

namespace shale {

namespace {

using complex128 = std::complex<double>;

// Returns whether a floating type can represent `value` up to rounding: a finite value must not
// become infinite, and an infinity must not become NaN.
template <class T>
bool in_range(double value) {
  const double stored = convert<T>(value);
  return std::isnan(value) || stored == value || (std::isfinite(value) && std::isfinite(stored));
}

template <class T, class Value>
bool real_fits(Value value) {
  if constexpr (std::is_same_v<Value, bool>) return true;
  else if constexpr (std::is_same_v<T, bool>) return value == Value{0} || value == Value{1};
  else if constexpr (!std::is_integral_v<T>) return in_range<T>(static_cast<double>(value));
  else if constexpr (std::is_integral_v<Value>) return std::in_range<T>(value);
  else {
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double lowest = std::is_signed_v<T> ? -beyond : 0.0;
    return std::trunc(value) == value && value >= lowest && value < beyond;
  }
}

template <class T, class Value>
bool value_fits(Value value) {
  if constexpr (std::is_same_v<Value, complex128>) {
    if constexpr (detail::is_complex<T>)
      return in_range<typename T::value_type>(value.real()) &&
             in_range<typename T::value_type>(value.imag());
    else return value.imag() == 0 && real_fits<T>(value.real());
  } else if constexpr (detail::is_complex<T>) {
    return real_fits<typename T::value_type>(value);
  } else {
    return real_fits<T>(value);
  }
}

// The fewest digits that round-trip through T, formatted as in Python: with an exponent below 1e-4
// and from 1e16 on.
template <class T>
std::string shortest(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return fmt::format("{}", static_cast<T>(value));
  } else {
    // The library has no shortest format for the small floats, so try more and more digits until
    // the text reads back as the same value. At most 16 attempts.
    for (int digits = 1; digits < std::numeric_limits<double>::max_digits10; ++digits) {
      const std::string text = fmt::format("{:.{}e}", value, digits - 1);
      double rounded = value;
      std::from_chars(text.data(), text.data() + text.size(), rounded);
      if (static_cast<double>(convert<T>(rounded)) == value) return fmt::format("{}", rounded);
    }
    return fmt::format("{}", value);
  }
}

std::string shortest_of(dtype type, double value) {
  switch (type) {
    case dtype::float16:
      return shortest<float16>(value);
    case dtype::bfloat16:
      return shortest<bfloat16>(value);
    case dtype::float8_e4m3fn:
      return shortest<float8_e4m3fn>(value);
    case dtype::float8_e5m2:
      return shortest<float8_e5m2>(value);
    case dtype::float32:
    case dtype::complex64:
      return shortest<float>(value);
    default:
      return shortest<double>(value);
  }
}

std::string complex_text(dtype type, complex128 value) {
  const std::string imaginary = shortest_of(type, value.imag()) + "j";
  if (value.real() == 0 && !std::signbit(value.real())) return imaginary;
  return "(" + shortest_of(type, value.real()) + (imaginary[0] == '-' ? "" : "+") + imaginary + ")";
}

// Compares exactly: a double that equals an integer is compared as an integer.
template <class A, class B>
bool reals_equal(A a, B b) {
  if constexpr (std::is_same_v<A, bool>) return reals_equal(std::int64_t{a}, b);
  else if constexpr (std::is_same_v<B, bool>) return reals_equal(a, std::int64_t{b});
  else if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) return std::cmp_equal(a, b);
  else if constexpr (std::is_integral_v<A>) return real_fits<A>(b) && static_cast<A>(b) == a;
  else if constexpr (std::is_integral_v<B>) return reals_equal(b, a);
  else return a == b;
}

template <class A, class B>
bool values_equal(A a, B b) {
  constexpr bool a_is_complex = std::is_same_v<A, complex128>;
  constexpr bool b_is_complex = std::is_same_v<B, complex128>;
  if constexpr (a_is_complex && b_is_complex) return a == b;
  else if constexpr (a_is_complex) return a.imag() == 0 && reals_equal(a.real(), b);
  else if constexpr (b_is_complex) return values_equal(b, a);
  else return reals_equal(a, b);
}

}  // namespace

bool scalar::fits(shale::dtype type) const noexcept {
  if (!dtype_from_code(static_cast<std::uint8_t>(type))) return false;
  return visit(type, all_types{}, [&]<class T>(std::type_identity<T>) {
    return with_value([](auto held) { return value_fits<T>(held); });
  });
}

std::string scalar::to_string() const {
  switch (kind(type_)) {
    case dtype_kind::boolean:
      return boolean_ ? "True" : "False";
    case dtype_kind::signed_integer:
      return std::to_string(signed_);
    case dtype_kind::unsigned_integer:
      return std::to_string(unsigned_);
    case dtype_kind::complex:
      return complex_text(type_, {floating_[0], floating_[1]});
    case dtype_kind::floating:
      break;
  }
  const std::string digits = shortest_of(type_, floating_[0]);
  // Python's floats always show that they are not integers.
  return digits.find_first_of(".ena") == std::string::npos ? digits + ".0" : digits;
}

// A hidden friend does not inherit the visibility of its class's namespace.
[[gnu::visibility("default")]] bool operator==(const scalar& a, const scalar& b) noexcept {
  return a.with_value([&](auto left) {
    return b.with_value([&](auto right) { return values_equal(left, right); });
  });
}

void scalar::throw_does_not_fit(shale::dtype type) const {
  throw error(errc::invalid_argument, to_string() + " does not fit " + std::string(name(type)),
              {
                  "wanted a value that " + std::string(name(type)) +
                      " can represent up to rounding; cast explicitly to round, saturate or wrap",
              });
}

}  // namespace shale
