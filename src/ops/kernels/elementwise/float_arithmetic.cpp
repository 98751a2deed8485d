// Kernels of arithmetic and extrema of floats and complex numbers.
#include <math.h>

#include "ops/kernels/elementwise/loops.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

// ---- floats ------------------------------------------------------------------------------------

template <class T>
using bits_of =
    std::conditional_t<sizeof(T) == 2, std::uint16_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

/// The minimum: NaN if either is NaN; -0 is below +0.
template <class T>
inline T minimum_of(T a, T b) {
  using Bits = bits_of<T>;
  const T equal = as_bits<T>(as_bits<Bits>(a) | as_bits<Bits>(b));
  return a < b ? a : b < a ? b : a == b ? equal : a + b;
}

template <class T>
inline T maximum_of(T a, T b) {
  using Bits = bits_of<T>;
  const T equal = as_bits<T>(as_bits<Bits>(a) & as_bits<Bits>(b));
  return a > b ? a : b > a ? b : a == b ? equal : a + b;
}

/// The magnitude of a float with the sign of another one.
template <class T>
inline T with_sign(T magnitude, T sign) {
  using Bits = bits_of<T>;
  constexpr auto mask = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
  return as_bits<T>(
      static_cast<Bits>((as_bits<Bits>(magnitude) & mask) | (as_bits<Bits>(sign) & ~mask)));
}

/// A zero with the sign of `value`.
template <class T>
inline T zero_like(T value) {
  return with_sign(T{0}, value);
}

inline float comparable(half value) { return widen(value); }
inline float comparable(brain value) { return widen(value); }
inline float comparable(float value) { return value; }
inline double comparable(double value) { return value; }

/// The neighbour of `a` in the direction of `b`. The bits of floats of one sign are ordered as the
/// magnitudes are, and 0 is followed by the smallest number of the sign of `b`.
template <class T>
inline T neighbour(T a, T b) {
  using Bits = bits_of<T>;
  constexpr auto sign = static_cast<Bits>(~(static_cast<Bits>(~Bits{0}) >> 1));
  const auto x = comparable(a), y = comparable(b);
  const auto bits = as_bits<Bits>(a);
  const auto outwards = static_cast<Bits>((y > x) == (x > 0) ? bits + 1 : bits - 1);
  const auto smallest = static_cast<Bits>((as_bits<Bits>(b) & sign) | 1);
  const T moved = as_bits<T>(x == 0 ? smallest : outwards);
  const bool stays = (y != y) | (x == y);
  return x != x ? a : stays ? b : moved;
}

template <class T>
void fill_neighbours(kernel_table& table) {
  table.set(operation::copy_sign, type_of<T>,
            kernel_for<T, T, T>([](T a, T b) { return with_sign(a, b); }));
  table.set(operation::next_after, type_of<T>,
            kernel_for<T, T, T>([](T a, T b) { return neighbour(a, b); }));
}

// Division with remainder has the rules of Python's `//` and `%`. The quotient is the floor of the
// exact quotient. The remainder has the divisor's sign, even if it is zero. Division by zero gives
// the result of `/`, and NaN as the remainder.
//
// `fmod` is exact but slow and not vectorised. Most pairs have a quotient of few bits. For those,
// the product quotient * divisor has few enough bits to be exact in double, so dividend - quotient
// * divisor is the exact remainder (`divide_fast`). A first loop computes a block that way and
// notes whether some pair is outside the range; only then a second loop repairs those pairs by
// `divide_slowly`.

template <class T>
struct float_division {
  T quotient;
  T remainder;
};

inline double floor_of(double value) { return __builtin_floor(value); }
inline long double floor_of(long double value) { return __builtin_floorl(value); }

/// Divides by `fmod`. It serves pairs outside the range of `divide_fast`.
template <class T>
inline float_division<T> divide_slowly(T a, T b) {
  const T divided = a / b;
  const T nan = __builtin_nanf("");
  if (b == 0) return {divided, nan};
  if (a - a != 0 || b != b) return {nan, nan};
  const double x = a, y = b;
  double remainder = fmod(x, y);
  // The quotient is whole up to rounding. `Wide` has at least 11 bits more than T, so the nearest
  // whole number is exact.
  using Wide = std::conditional_t<sizeof(T) == 8, long double, double>;
  Wide quotient = (x - remainder) / y;
  if (sizeof(T) == 8 && quotient < 0x1p53 && quotient > -0x1p53)
    quotient = (static_cast<Wide>(x) - static_cast<Wide>(remainder)) / static_cast<Wide>(y);
  if (remainder != 0 && (remainder < 0) != (y < 0)) {
    remainder += y;
    quotient -= 1;
  }
  const Wide below = floor_of(quotient);
  const auto whole = static_cast<T>(quotient - below > Wide{0.5} ? below + 1 : below);
  return {whole == 0 ? zero_like<T>(divided) : whole,
          remainder == 0 ? zero_like<T>(b) : static_cast<T>(remainder)};
}

/// The whole number nearest to a double below 2^51. The sum with 1.5 * 2^52 has no bits for a
/// fraction.
inline double nearest(double value) {
  constexpr double shifter = 0x1.8p52;
  return (value + shifter) - shifter;
}

/// Whether `divide_fast` is exact: the quotient has few bits, and no term over- or underflows.
inline bool divides_fast(float a, float b) {
  const double quotient = static_cast<double>(a) / static_cast<double>(b);
  return (quotient < 0x1p28) & (quotient > -0x1p28) & (b - b == 0);
}
inline bool divides_fast(double a, double b) {
  const double quotient = a / b;
  const double size = b < 0 ? -b : b;
  return (quotient < 0x1p22) & (quotient > -0x1p22) & (size > 0x1p-900) & (size < 0x1p900);
}

/// a - quotient * b without rounding.
inline double exact_remainder(float a, float b, double quotient) {
  return static_cast<double>(a) - quotient * static_cast<double>(b);  // 28 + 24 bits
}
inline double exact_remainder(double a, double b, double quotient) {
  // b is split into two halves, so that each product has at most 22 + 27 bits and is exact.
  const auto high = as_bits<double>(as_bits<std::uint64_t>(b) & ~((std::uint64_t{1} << 27) - 1));
  return (a - quotient * high) - quotient * (b - high);
}

template <class T>
inline float_division<T> divide_fast(T a, T b) {
  const double divisor = b;
  const double divided = static_cast<double>(a) / divisor;
  double quotient = nearest(divided);
  double remainder = exact_remainder(a, b, quotient);
  const bool below = (remainder != 0) & ((remainder < 0) != (divisor < 0));
  remainder = below ? remainder + divisor : remainder;
  quotient = below ? quotient - 1 : quotient;
  const auto whole = static_cast<T>(quotient);
  return {whole == 0 ? zero_like<T>(static_cast<T>(divided)) : whole,
          remainder == 0 ? zero_like<T>(b) : static_cast<T>(remainder)};
}

/// The results of a division. `fast` serves most pairs, and `slow` all pairs.
template <class T>
struct floor_quotient {
  static T fast(T a, T b) { return divide_fast(a, b).quotient; }
  static T slow(T a, T b) { return divide_slowly(a, b).quotient; }
};
template <class T>
struct floor_remainder {
  static T fast(T a, T b) { return divide_fast(a, b).remainder; }
  static T slow(T a, T b) { return divide_slowly(a, b).remainder; }
};
/// The remainder of the magnitudes, with the dividend's sign.
template <class T>
struct truncated_remainder {
  static T fast(T a, T b) {
    return with_sign(divide_fast(with_sign(a, T{0}), with_sign(b, T{0})).remainder, a);
  }
  static T slow(T a, T b) { return static_cast<T>(fmod(double{a}, double{b})); }
};

template <class T, template <class> class Division>
void divide_floats(std::byte* const* data, index_t count) {
  auto* out = reinterpret_cast<T*>(data[0]);
  const auto* a = reinterpret_cast<const T*>(data[1]);
  const auto* b = reinterpret_cast<const T*>(data[2]);
  constexpr index_t block = 256;
  T results[block];
  for (index_t first = 0; first < count; first += block) {
    const index_t length = count - first < block ? count - first : block;
    std::uint32_t slow = 0;
    for (index_t i = 0; i < length; ++i) {
      results[i] = Division<T>::fast(a[first + i], b[first + i]);
      slow |= divides_fast(a[first + i], b[first + i]) ? 0u : 1u;
    }
    if (slow != 0) {
      for (index_t i = 0; i < length; ++i)
        if (!divides_fast(a[first + i], b[first + i]))
          results[i] = Division<T>::slow(a[first + i], b[first + i]);
    }
    __builtin_memcpy(out + first, results, static_cast<std::size_t>(length) * sizeof(T));
  }
}

template <class T>
void fill_floats(kernel_table& table) {
  constexpr dtype type = type_of<T>;
  table.set(operation::add, type, kernel_for<T, T, T>([](T a, T b) { return a + b; }));
  table.set(operation::subtract, type, kernel_for<T, T, T>([](T a, T b) { return a - b; }));
  table.set(operation::multiply, type, kernel_for<T, T, T>([](T a, T b) { return a * b; }));
  table.set(operation::divide, type, kernel_for<T, T, T>([](T a, T b) { return a / b; }));
  table.set(product_sum::add, type,
            kernel_for<T, T, T, T>([](T a, T b, T c) { return a * b + c; }));
  table.set(product_sum::subtract, type,
            kernel_for<T, T, T, T>([](T a, T b, T c) { return a * b - c; }));
  table.set(product_sum::subtract_from, type,
            kernel_for<T, T, T, T>([](T a, T b, T c) { return c - a * b; }));
  table.set(operation::floor_divide, type,
            &run<&divide_floats<T, floor_quotient>, sizeof(T), sizeof(T), sizeof(T)>);
  table.set(operation::remainder, type,
            &run<&divide_floats<T, floor_remainder>, sizeof(T), sizeof(T), sizeof(T)>);
  table.set(operation::truncated_remainder, type,
            &run<&divide_floats<T, truncated_remainder>, sizeof(T), sizeof(T), sizeof(T)>);
  table.set(operation::minimum, type,
            kernel_for<T, T, T>([](T a, T b) { return minimum_of(a, b); }));
  table.set(operation::maximum, type,
            kernel_for<T, T, T>([](T a, T b) { return maximum_of(a, b); }));
  table.set(operation::negative, type, kernel_for<T, T>([](T a) { return -a; }));
  table.set(operation::square, type, kernel_for<T, T>([](T a) { return a * a; }));
  table.set(operation::absolute, type, kernel_for<T, T>([](T a) {
              using Bits = bits_of<T>;
              return as_bits<T>(static_cast<Bits>(as_bits<Bits>(a) & (~Bits{0} >> 1)));
            }));
  table.set(operation::sign, type, kernel_for<T, T>([](T a) {
              const T whole = (a > 0 ? T{1} : T{0}) - (a < 0 ? T{1} : T{0});
              return a == a ? whole : a;
            }));
  if constexpr (sizeof(T) == 4) {
    table.set(operation::square_root, type,
              kernel_for<T, T>([](T a) { return __builtin_sqrtf(a); }));
    table.set(operation::floor, type, kernel_for<T, T>([](T a) { return __builtin_floorf(a); }));
    table.set(operation::ceiling, type, kernel_for<T, T>([](T a) { return __builtin_ceilf(a); }));
    table.set(operation::truncate, type, kernel_for<T, T>([](T a) { return __builtin_truncf(a); }));
    table.set(operation::round, type, kernel_for<T, T>([](T a) { return __builtin_rintf(a); }));
  } else {
    table.set(operation::square_root, type,
              kernel_for<T, T>([](T a) { return __builtin_sqrt(a); }));
    table.set(operation::floor, type, kernel_for<T, T>([](T a) { return __builtin_floor(a); }));
    table.set(operation::ceiling, type, kernel_for<T, T>([](T a) { return __builtin_ceil(a); }));
    table.set(operation::truncate, type, kernel_for<T, T>([](T a) { return __builtin_trunc(a); }));
    table.set(operation::round, type, kernel_for<T, T>([](T a) { return __builtin_rint(a); }));
  }
}

// ---- complex -----------------------------------------------------------------------------------

inline float magnitude(complex_of<float> a) {
  // In double the squares do not overflow, and the result has one rounding more than the exact one.
  // The result is infinite if one part is, even if the other is NaN.
  const double real = a.real, imaginary = a.imaginary;
  const auto length = static_cast<float>(__builtin_sqrt(real * real + imaginary * imaginary));
  const float infinite = __builtin_inff();
  const bool infinity =
      (real == infinite) | (real == -infinite) | (imaginary == infinite) | (imaginary == -infinite);
  return infinity ? infinite : length;
}
inline double magnitude(complex_of<double> a) { return hypot(a.real, a.imaginary); }

/// Divides numerator and denominator by the divisor's larger part first, so that no intermediate
/// result overflows if the quotient does not.
/// Source   R. L. Smith, Algorithm 116, Communications of the ACM 5 (1962)
template <class T>
inline complex_of<T> divide_complex(complex_of<T> a, complex_of<T> b) {
  const T real = b.real < 0 ? -b.real : b.real;
  const T imaginary = b.imaginary < 0 ? -b.imaginary : b.imaginary;
  if (real == 0 && imaginary == 0) return {a.real / real, a.imaginary / real};
  const bool wide = real >= imaginary;
  const T large = wide ? b.real : b.imaginary;
  const T small = wide ? b.imaginary : b.real;
  const T ratio = small / large;
  const T scale = large + small * ratio;
  const T along = wide ? a.real : a.imaginary;
  const T across = wide ? a.imaginary : a.real;
  const T first = (along + across * ratio) / scale;
  const T second = (across + flipped(along) * ratio) / scale;
  return {first, wide ? second : -second};
}

/// a / |a|.
inline complex_of<float> direction(complex_of<float> a) {
  const double real = a.real, imaginary = a.imaginary;
  const double length = __builtin_sqrt(real * real + imaginary * imaginary);
  const bool zero = length == 0;
  return {zero ? 0 : static_cast<float>(real / length),
          zero ? 0 : static_cast<float>(imaginary / length)};
}
inline complex_of<double> direction(complex_of<double> a) {
  if (a.real == 0 && a.imaginary == 0) return {0, 0};
  // Both parts are scaled by a power of two, so that the length neither overflows nor is subnormal.
  const double size = fmax(fabs(a.real), fabs(a.imaginary));
  const double scale = size > 0x1p1000 ? 0x1p-100 : size < 0x1p-900 ? 0x1p100 : 1;
  const double real = a.real * scale, imaginary = a.imaginary * scale;
  const double length = hypot(real, imaginary);
  return {real / length, imaginary / length};
}

template <class T>
void fill_complex(kernel_table& table) {
  using Complex = complex_of<T>;
  constexpr dtype type = type_of<Complex>;
  table.set(operation::add, type, kernel_for<Complex, Complex, Complex>([](Complex a, Complex b) {
              return Complex{a.real + b.real, a.imaginary + b.imaginary};
            }));
  table.set(operation::subtract, type,
            kernel_for<Complex, Complex, Complex>([](Complex a, Complex b) {
              return Complex{a.real - b.real, a.imaginary - b.imaginary};
            }));
  table.set(operation::multiply, type,
            kernel_for<Complex, Complex, Complex>([](Complex a, Complex b) {
              return Complex{a.real * b.real + flipped(a.imaginary) * b.imaginary,
                             a.real * b.imaginary + a.imaginary * b.real};
            }));
  table.set(operation::divide, type,
            kernel_for<Complex, Complex, Complex>(
                [](Complex a, Complex b) { return divide_complex(a, b); }));
  table.set(operation::negative, type, kernel_for<Complex, Complex>([](Complex a) {
              return Complex{-a.real, -a.imaginary};
            }));
  table.set(operation::square, type, kernel_for<Complex, Complex>([](Complex a) {
              return Complex{a.real * a.real + flipped(a.imaginary) * a.imaginary,
                             a.real * a.imaginary + a.imaginary * a.real};
            }));
  table.set(operation::absolute, type,
            kernel_for<T, Complex>([](Complex a) { return magnitude(a); }));
  table.set(operation::sign, type,
            kernel_for<Complex, Complex>([](Complex a) { return direction(a); }));
  table.set(operation::conjugate, type, kernel_for<Complex, Complex>([](Complex a) {
              return Complex{a.real, flipped(a.imaginary)};
            }));
  table.set(operation::real_part, type, kernel_for<T, Complex>([](Complex a) { return a.real; }));
  table.set(operation::imaginary_part, type,
            kernel_for<T, Complex>([](Complex a) { return a.imaginary; }));
}

}  // namespace

void fill_float_arithmetic(kernel_table& table) {
  for_types(wide_floats{}, [&]<class T>(T) { fill_floats<T>(table); });
  for_types(wide_floats{}, [&]<class T>(T) { fill_complex<T>(table); });
  for_types(type_list<half, brain, float, double>{},
            [&]<class T>(T) { fill_neighbours<T>(table); });
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
