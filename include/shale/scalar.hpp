// A single value of any dtype, with checked and unchecked conversions.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "shale/convert.hpp"
#include "shale/dtype.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A value with the dtype that it came from. It is held as a bool, a signed or unsigned 64-bit
/// integer, a double or a complex of doubles.
/// In an expression a scalar is *weak*, as in PyTorch and NumPy 2: in `tensor + 2` the result has
/// the tensor's dtype, unless the number's kind is higher than the tensor's.
class scalar {
 public:
  /// The boolean false.
  scalar() noexcept : scalar(false) {}

  /// Holds the value exactly, with its dtype. A long double is rounded to a double.
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

  /// The dtype of the value that it was made from.
  shale::dtype dtype() const noexcept { return type_; }

  /// The value as T by the rules of `convert`: it is rounded, saturated or wrapped where needed.
  template <class T>
  T as() const noexcept {
    return with_value([](auto held) { return convert<T>(held); });
  }

  /// The value as T, which must be able to represent it. If T is a floating type, the value may be
  /// rounded.
  /// Throws   invalid_argument for a fraction or a NaN as an integer, a value out of range, and an
  ///          imaginary part as a real type
  template <class T>
  T to() const;

  /// Whether `to` would succeed for the C++ type of that dtype. False if `type` is not a dtype.
  bool fits(shale::dtype type) const noexcept;

  /// The text that Python's repr gives: "3", "2.5", "nan", "(1+2j)", "True". A float has the fewest
  /// digits that read back as the same value of its dtype.
  /// Throws   std::bad_alloc
  std::string to_string() const;

  /// Compares the exact numbers, whatever their types. NaN equals nothing.
  friend bool operator==(const scalar& a, const scalar& b) noexcept;

 private:
  template <class T>
  static constexpr shale::dtype dtype_of_arithmetic() noexcept {
    if constexpr (std::is_same_v<T, long double>) return dtype::float64;
    else return dtype_of<T>();
  }
  [[noreturn]] void throw_does_not_fit(shale::dtype type) const;

  // Calls `function` with the value: bool, a 64-bit integer, double or std::complex<double>.
  template <class Function>
  auto with_value(Function function) const {
    const dtype_kind held = kind(type_);
    if (held == dtype_kind::boolean) return function(boolean_);
    if (held == dtype_kind::signed_integer) return function(signed_);
    if (held == dtype_kind::unsigned_integer) return function(unsigned_);
    if (held == dtype_kind::floating) return function(floating_[0]);
    return function(std::complex<double>(floating_[0], floating_[1]));
  }

  shale::dtype type_;
  // The kind of type_ says which member is set. It is not a std::variant, because nearly every file
  // includes this header.
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
