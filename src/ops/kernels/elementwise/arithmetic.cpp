// Kernels of arithmetic, extrema and bit operations of integers and bools, and of selection.
#include "ops/kernels/elementwise/loops.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

// ---- integers ----------------------------------------------------------------------------------

/// The floating type in which integers of type T are divided, because vector units divide floats
/// only. Its mantissa has more bits than T. Truncating the rounded quotient then gives the exact
/// one: if a / b is not whole, it lies at least 1 / b below the next whole number, and its rounding
/// error is smaller than that, as a is below 2 to the number of mantissa bits.
template <class T>
using divides_in = std::conditional_t<sizeof(T) <= 2, float, double>;

template <class T>
struct quotient_and_remainder {
  T quotient;
  T remainder;
};

/// Quotient rounded towards minus infinity, and its remainder. Both are 0 if b is 0. lowest / -1
/// wraps.
template <class T>
inline quotient_and_remainder<T> divide_floor(T a, T b) {
  using Word = word<T>;
  const bool by_zero = b == 0;
  const T divisor = by_zero ? T{1} : b;
  T quotient;
  if constexpr (sizeof(T) < 8) {
    using Float = divides_in<T>;
    const Float exact = static_cast<Float>(a) / static_cast<Float>(divisor);
    if constexpr (std::is_same_v<T, std::int32_t>) {
      // Only one quotient lies outside int32: 2^31, which wraps to lowest.
      const Float inside = exact > 2147483647.0 ? -2147483648.0 : exact;
      quotient = static_cast<T>(inside);
    } else {
      quotient = static_cast<T>(to<std::conditional_t<(sizeof(T) < 4), std::int32_t, T>>(exact));
    }
  } else if constexpr (is_signed<T>) {
    quotient = divisor == -1 ? static_cast<T>(Word{0} - static_cast<Word>(a)) : a / divisor;
  } else {
    quotient = a / divisor;
  }
  auto remainder = static_cast<T>(static_cast<Word>(a) -
                                  static_cast<Word>(quotient) * static_cast<Word>(divisor));
  if constexpr (is_signed<T>) {
    const bool below = (remainder != 0) & ((remainder < 0) != (divisor < 0));
    quotient = static_cast<T>(static_cast<Word>(quotient) - (below ? 1u : 0u));
    remainder = static_cast<T>(static_cast<Word>(remainder) +
                               (below ? static_cast<Word>(divisor) : Word{0}));
  }
  return {by_zero ? T{0} : quotient, by_zero ? T{0} : remainder};
}

/// The remainder of the quotient that is rounded towards zero: it has the dividend's sign.
template <class T>
inline T truncated_remainder_of_integers(T a, T b) {
  using Word = word<T>;
  const T above = divide_floor(a, b).remainder;  // has the divisor's sign
  const bool differ = (above != 0) & ((a < 0) != (b < 0));
  return differ ? static_cast<T>(static_cast<Word>(above) - static_cast<Word>(b)) : above;
}

/// A negative `places` is large as an unsigned number. Places beyond the width are limited first,
/// so that the compiler may evaluate both sides of the selection.
template <class T>
inline T shifted_left(T a, T places) {
  using Bits = std::make_unsigned_t<T>;
  constexpr Bits last = 8 * sizeof(T) - 1;
  const auto count = static_cast<Bits>(places);
  const Bits inside = count < last ? count : last;
  const auto moved = static_cast<Bits>(word<T>{static_cast<Bits>(a)} << inside);
  return static_cast<T>(count > last ? Bits{0} : moved);
}
template <class T>
inline T shifted_right(T a, T places) {
  using Bits = std::make_unsigned_t<T>;
  constexpr Bits last = 8 * sizeof(T) - 1;
  const auto count = static_cast<Bits>(places);
  const auto moved = static_cast<T>(a >> (count < last ? count : last));
  if constexpr (is_signed<T>) return moved;  // the last place already repeats the sign
  else return count > last ? T{0} : moved;
}

/// base^exponent modulo 2^bits, by repeated squaring. A negative exponent gives 0, or ±1 for bases
/// ±1.
template <class T>
inline T power_of_integers(T base, T exponent) {
  if constexpr (is_signed<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return (exponent & 1) != 0 ? T{-1} : T{1};
      return 0;
    }
  }
  using Word = word<T>;
  auto bits_left = static_cast<Word>(exponent);
  auto factor = static_cast<Word>(base);
  Word result = 1;
  for (; bits_left != 0; bits_left >>= 1) {
    if ((bits_left & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

/// Products and their sums, for integers of at least four bytes.
template <class Bits>
void fill_product_sums(kernel_table& table, dtype type) {
  table.set(product_sum::add, type, kernel_for<Bits, Bits, Bits, Bits>([](Bits a, Bits b, Bits c) {
              return static_cast<Bits>(a * b + c);
            }));
  table.set(product_sum::subtract, type,
            kernel_for<Bits, Bits, Bits, Bits>(
                [](Bits a, Bits b, Bits c) { return static_cast<Bits>(a * b - c); }));
  table.set(product_sum::subtract_from, type,
            kernel_for<Bits, Bits, Bits, Bits>(
                [](Bits a, Bits b, Bits c) { return static_cast<Bits>(c - a * b); }));
}

template <class T>
void fill_integers(kernel_table& table) {
  using Word = word<T>;
  // Wrapping arithmetic gives the same bits for signed and unsigned types, so both use one kernel.
  using Bits = std::make_unsigned_t<T>;
  constexpr dtype type = type_of<T>;
  table.set(operation::add, type, kernel_for<Bits, Bits, Bits>([](Bits a, Bits b) {
              return static_cast<Bits>(Word{a} + Word{b});
            }));
  table.set(operation::subtract, type, kernel_for<Bits, Bits, Bits>([](Bits a, Bits b) {
              return static_cast<Bits>(Word{a} - Word{b});
            }));
  table.set(operation::multiply, type, kernel_for<Bits, Bits, Bits>([](Bits a, Bits b) {
              return static_cast<Bits>(Word{a} * Word{b});
            }));
  if constexpr (sizeof(T) >= 4) fill_product_sums<Bits>(table, type);
  table.set(operation::floor_divide, type,
            kernel_for<T, T, T>([](T a, T b) { return divide_floor(a, b).quotient; }));
  table.set(operation::remainder, type,
            kernel_for<T, T, T>([](T a, T b) { return divide_floor(a, b).remainder; }));
  table.set(operation::truncated_remainder, type,
            kernel_for<T, T, T>([](T a, T b) { return truncated_remainder_of_integers(a, b); }));
  table.set(operation::shift_left, type,
            kernel_for<T, T, T>([](T a, T b) { return shifted_left(a, b); }));
  table.set(operation::shift_right, type,
            kernel_for<T, T, T>([](T a, T b) { return shifted_right(a, b); }));
  table.set(operation::power, type,
            kernel_for<T, T, T>([](T a, T b) { return power_of_integers(a, b); }));
  table.set(operation::minimum, type, kernel_for<T, T, T>([](T a, T b) { return a < b ? a : b; }));
  table.set(operation::maximum, type, kernel_for<T, T, T>([](T a, T b) { return a > b ? a : b; }));
  table.set(operation::bit_and, type,
            kernel_for<Bits, Bits, Bits>([](Bits a, Bits b) { return static_cast<Bits>(a & b); }));
  table.set(operation::bit_or, type,
            kernel_for<Bits, Bits, Bits>([](Bits a, Bits b) { return static_cast<Bits>(a | b); }));
  table.set(operation::bit_xor, type,
            kernel_for<Bits, Bits, Bits>([](Bits a, Bits b) { return static_cast<Bits>(a ^ b); }));
  table.set(operation::bit_not, type,
            kernel_for<Bits, Bits>([](Bits a) { return static_cast<Bits>(~a); }));
  table.set(operation::negative, type,
            kernel_for<Bits, Bits>([](Bits a) { return static_cast<Bits>(Word{0} - Word{a}); }));
  table.set(operation::square, type,
            kernel_for<Bits, Bits>([](Bits a) { return static_cast<Bits>(Word{a} * Word{a}); }));
  table.set(operation::absolute, type, kernel_for<T, T>([](T a) {
              return a < 0 ? static_cast<T>(Word{0} - static_cast<Word>(a)) : a;
            }));
  table.set(operation::sign, type, kernel_for<T, T>([](T a) {
              return static_cast<T>((a > 0 ? 1 : 0) - (a < 0 ? 1 : 0));
            }));
}

// For bool, + and | mean "or", and * and & mean "and", as in NumPy and PyTorch.
void fill_boolean(kernel_table& table) {
  constexpr dtype type = dtype::boolean;
  const auto conjunction = kernel_for<boolean, boolean, boolean>([](boolean a, boolean b) {
    return boolean{static_cast<std::uint8_t>((a.byte != 0) & (b.byte != 0))};
  });
  const auto disjunction = kernel_for<boolean, boolean, boolean>([](boolean a, boolean b) {
    return boolean{static_cast<std::uint8_t>((a.byte | b.byte) != 0)};
  });
  table.set(operation::add, type, disjunction);
  table.set(operation::multiply, type, conjunction);
  table.set(operation::minimum, type, conjunction);
  table.set(operation::maximum, type, disjunction);
  table.set(operation::bit_and, type, conjunction);
  table.set(operation::bit_or, type, disjunction);
  table.set(operation::bit_xor, type,
            kernel_for<boolean, boolean, boolean>([](boolean a, boolean b) {
              return boolean{static_cast<std::uint8_t>((a.byte != 0) != (b.byte != 0))};
            }));
  table.set(operation::bit_not, type, kernel_for<boolean, boolean>([](boolean a) {
              return boolean{static_cast<std::uint8_t>(a.byte == 0)};
            }));
  table.set(operation::absolute, type,
            kernel_for<boolean, boolean>([](boolean a) { return boolean{number(a)}; }));
}

// ---- selection ---------------------------------------------------------------------------------

template <class Word, class... Types>
void fill_select(kernel_table& table, Types... types) {
  const auto run = kernel_for<Word, boolean, Word, Word>(
      [](boolean condition, Word a, Word b) { return condition.byte != 0 ? a : b; });
  (table.set(operation::select, types, run), ...);
}

}  // namespace

void fill_arithmetic(kernel_table& table) {
  fill_boolean(table);
  for_types(integers{}, [&]<class T>(T) { fill_integers<T>(table); });
  table.set(operation::select, dtype::boolean,
            kernel_for<std::uint8_t, boolean, std::uint8_t, std::uint8_t>(
                [](boolean condition, std::uint8_t a, std::uint8_t b) {
                  return number(boolean{condition.byte != 0 ? a : b});
                }));
  fill_select<std::uint8_t>(table, dtype::int8, dtype::uint8, dtype::float8_e4m3fn,
                            dtype::float8_e5m2);
  fill_select<std::uint16_t>(table, dtype::int16, dtype::uint16, dtype::float16, dtype::bfloat16);
  fill_select<std::uint32_t>(table, dtype::int32, dtype::uint32, dtype::float32);
  fill_select<std::uint64_t>(table, dtype::int64, dtype::uint64, dtype::float64, dtype::complex64);
  fill_select<complex_of<double>>(table, dtype::complex128);
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
