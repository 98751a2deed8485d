// One element of any dtype, with conversions that are checked.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "shale/convert.hpp"
#include "shale/dtype.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A single value that remembers its kind: a boolean, a signed or unsigned 64-bit integer, a double
/// or a complex of doubles, and the dtype it came from.
/// A C++ literal is *weak*: in `tensor + 2` the tensor's dtype wins within the same kind or a
/// higher one, as in PyTorch and NumPy 2.
class scalar {
 public:
  /// The boolean false.
  scalar() noexcept : scalar(false) {}

  /// Holds the value exactly (long double: as a double) and remembers its type.
  template <class T>
  requires(std::is_arithmetic_v<T>) scalar(T value)
  noexcept : type_(dtype_of_arithmetic<T>()) {
    if constexpr (std::is_same_v<T, bool>) boolean_ = value;
    else if constexpr (std::is_floating_point_v<T>) floating_[0] = static_cast<double>(value);
    else if constexpr (std::is_signed_v<T>) signed_ = value;
    else unsigned_ = value;
  }
  scalar(float16 value) noexcept : type_(dtype::float16), floating_{double{value}, 0} {}
  scalar(bfloat16 value) noexcept : type_(dtype::bfloat16), floating_{double{value}, 0} {}
  scalar(float8_e4m3fn value) noexcept : type_(dtype::float8_e4m3fn), floating_{double{value}, 0} {}
  scalar(float8_e5m2 value) noexcept : type_(dtype::float8_e5m2), floating_{double{value}, 0} {}
  scalar(std::complex<float> value) noexcept
      : type_(dtype::complex64), floating_{value.real(), value.imag()} {}
  scalar(std::complex<double> value) noexcept
      : type_(dtype::complex128), floating_{value.real(), value.imag()} {}

  /// The dtype that the value came from.
  dtype type() const noexcept { return type_; }

  /// The value as T by the rules of `convert`: rounds, saturates, wraps; never fails.
  template <class T>
  T as() const noexcept {
    return with_value([](auto held) { return convert<T>(held); });
  }

  /// The value as T.
  /// Throws   invalid_argument if T cannot hold it: a fraction or NaN for an integer, a value out
  ///          of range, an imaginary part for a real type. Rounding to a float's precision is fine.
  template <class T>
  T to() const;

  /// Whether `to` would succeed for that dtype.
  bool fits(dtype type) const noexcept;

  /// As Python's repr prints it: "3", "2.5", "nan", "(1+2j)", "True".
  std::string to_string() const;

  /// Equal as numbers, whatever their types; NaN equals nothing.
  friend bool operator==(const scalar& a, const scalar& b) noexcept;

 private:
  template <class T>
  static constexpr dtype dtype_of_arithmetic() noexcept {
    if constexpr (std::is_same_v<T, long double>) return dtype::float64;
    else return dtype_of<T>();
  }
  [[noreturn]] void throw_does_not_fit(dtype type) const;

  // Calls `function` with the value: bool, a 64-bit integer, double or std::complex<double>.
  template <class Function>
  auto with_value(Function function) const {
    switch (kind(type_)) {
      case dtype_kind::boolean:
        return function(boolean_);
      case dtype_kind::signed_integer:
        return function(signed_);
      case dtype_kind::unsigned_integer:
        return function(unsigned_);
      case dtype_kind::floating:
        return function(floating_[0]);
      case dtype_kind::complex:
        break;
    }
    return function(std::complex<double>(floating_[0], floating_[1]));
  }

  dtype type_;
  // By the kind of type_. A union, not a std::variant: this header is in everything.
  union {
    bool boolean_;
    std::int64_t signed_;
    std::uint64_t unsigned_;
    double floating_[2];  // the second is the imaginary part
  };
};

template <class T>
T scalar::to() const {
  if (!fits(dtype_of<T>())) throw_does_not_fit(dtype_of<T>());
  return as<T>();
}

}  // namespace shale
