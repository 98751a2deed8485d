// Tests every kernel but the elementary functions, for every dtype, layout and instruction set. The
// oracles are loops over single elements in wider arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "ops/kernels/blocks.hpp"
#include "ops/kernels/expected_operations.hpp"
#include "ops/kernels/operations/operation_facts.hpp"

namespace shale::test {
namespace {

using ops::operation;

__extension__ typedef __int128 wide_integer;

/// Whether both have the same bits, or both are NaN.
struct same_values {
  template <class T>
  bool operator()(T got, T wanted) const {
    return same(got, wanted);
  }
};

template <class T>
void draw_value(std::byte* to, generator& random) {
  write(to, some_value<T>(random));
}

// Oracles are lambdas without captures, so that they convert to function pointers.

template <class Out, class In, class Agrees>
expected_operation expecting(operation op, Agrees) {
  return {op,
          dtype_of<In>(),
          dtype_of<Out>(),
          draw_value<In>,
          nullptr,
          [](const std::byte* got, const std::byte* wanted) {
            return Agrees{}(read<Out>(got), read<Out>(wanted));
          },
          same_bytes<Out>,
          show_bytes<In>,
          show_bytes<Out>};
}

template <class Out, class In, class Oracle, class Agrees = same_values>
void expect_binary(operation op, Oracle, Agrees agrees = {}) {
  expected_operation tested = expecting<Out, In>(op, agrees);
  tested.oracle = [](std::byte* out, const std::byte* a, const std::byte* b) {
    write<Out>(out, Oracle{}(read<In>(a), read<In>(b)));
  };
  expect_operation(tested);
}

template <class Out, class In, class Oracle, class Agrees = same_values>
void expect_unary(operation op, Oracle, Agrees agrees = {}) {
  expected_operation tested = expecting<Out, In>(op, agrees);
  tested.oracle = [](std::byte* out, const std::byte* a, const std::byte*) {
    write<Out>(out, Oracle{}(read<In>(a)));
  };
  expect_operation(tested);
}

// ---- integers ----------------------------------------------------------------------------------

template <class T>
class Integers : public testing::Test {};
using integer_list = testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                    std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Integers, integer_list);

template <class T>
wide_integer floor_of_quotient(T a, T b) {
  const wide_integer x = a, y = b;
  wide_integer quotient = x / y;
  if (x % y != 0 && (x < 0) != (y < 0)) --quotient;
  return quotient;
}

/// Computes the power from the exponent's most significant bit on.
template <class T>
T power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? T{1} : T{-1};
      return 0;
    }
  }
  std::uint64_t result = 1;
  for (int bit = 63; bit >= 0; --bit) {
    result *= result;
    if ((static_cast<std::uint64_t>(exponent) >> bit) & 1)
      result *= static_cast<std::uint64_t>(base);
  }
  return static_cast<T>(result);
}

TYPED_TEST(Integers, WrapInArithmetic) {
  using T = TypeParam;
  using Wide = wide_integer;
  expect_binary<T, T>(operation::add, [](T a, T b) { return static_cast<T>(Wide{a} + Wide{b}); });
  expect_binary<T, T>(operation::subtract,
                      [](T a, T b) { return static_cast<T>(Wide{a} - Wide{b}); });
  expect_binary<T, T>(operation::multiply, [](T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  });
  expect_unary<T, T>(operation::negative, [](T a) { return static_cast<T>(-Wide{a}); });
  expect_unary<T, T>(operation::absolute, [](T a) { return static_cast<T>(a < 0 ? -Wide{a} : a); });
  expect_unary<T, T>(operation::square, [](T a) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(a));
  });
  expect_unary<T, T>(operation::sign, [](T a) {
    return static_cast<T>(a > 0 ? 1 : a < 0 ? -1 : 0);
  });
}

TYPED_TEST(Integers, DivideTowardsMinusInfinityAndGiveZeroByZero) {
  using T = TypeParam;
  expect_binary<T, T>(operation::floor_divide, [](T a, T b) {
    return b == 0 ? T{0} : static_cast<T>(floor_of_quotient(a, b));
  });
  expect_binary<T, T>(operation::remainder, [](T a, T b) {
    return b == 0 ? T{0}
                  : static_cast<T>(wide_integer{a} - floor_of_quotient(a, b) * wide_integer{b});
  });
}

TYPED_TEST(Integers, HaveTheRemaindersOfTruncatedQuotients) {
  using T = TypeParam;
  expect_binary<T, T>(operation::truncated_remainder, [](T a, T b) {
    return b == 0 ? T{0} : static_cast<T>(wide_integer{a} % wide_integer{b});
  });
}

template <class T>
bool moves_all_bits_out(T places) {
  return places < 0 || wide_integer{places} >= 8 * static_cast<int>(sizeof(T));
}

TYPED_TEST(Integers, MoveAllBitsOutByTheirWidthAndBeyond) {
  using T = TypeParam;
  expect_binary<T, T>(operation::shift_left, [](T a, T places) {
    if (moves_all_bits_out(places)) return T{0};
    auto moved = static_cast<std::uint64_t>(a);
    for (T k = 0; k < places; ++k) moved *= 2;
    return static_cast<T>(moved);
  });
  expect_binary<T, T>(operation::shift_right, [](T a, T places) {
    if (moves_all_bits_out(places)) return static_cast<T>(a < 0 ? -1 : 0);
    wide_integer moved = a;
    for (T k = 0; k < places; ++k) moved = floor_of_quotient<wide_integer>(moved, 2);
    return static_cast<T>(moved);
  });
}

// The quotient is exact as long as every whole number of its size has a double.
TEST(Floats, DivideTowardsMinusInfinityUpToTheLastWholeNumber) {
  __extension__ typedef __float128 quad;
  generator random(11);
  for (const ops::isa isa : usable_isas()) {
    const ops::kernel divide =
        ops::kernels_for(isa).operations[static_cast<int>(operation::floor_divide)]
                                        [static_cast<int>(dtype::float64)];
    for (int round = 0; round < 20000; ++round) {
      const double size = std::ldexp(std::uniform_real_distribution<double>(1, 2)(random),
                                     static_cast<int>(40 + random() % 13));
      double divisor = std::uniform_real_distribution<double>(1, 2)(random);
      if (random() % 2 == 0) divisor = -divisor;
      double dividend = size * divisor;
      double got = 0;
      std::byte* data[] = {reinterpret_cast<std::byte*>(&got),
                           reinterpret_cast<std::byte*>(&dividend),
                           reinterpret_cast<std::byte*>(&divisor)};
      const index_t strides[] = {8, 8, 8, 0, 0, 0};
      divide(data, strides, 1, 1);
      const quad exact = static_cast<quad>(dividend) / static_cast<quad>(divisor);
      auto whole = static_cast<std::int64_t>(exact);
      if (static_cast<quad>(whole) > exact) --whole;
      ASSERT_EQ(static_cast<std::int64_t>(got), whole)
          << ops::name(isa) << ' ' << show(dividend) << " // " << show(divisor);
    }
  }
}

TYPED_TEST(Integers, RaiseToPowers) {
  using T = TypeParam;
  expect_binary<T, T>(operation::power, [](T a, T b) { return power(a, b); });
}

TYPED_TEST(Integers, CompareAndCombineBits) {
  using T = TypeParam;
  expect_binary<T, T>(operation::minimum, [](T a, T b) { return b < a ? b : a; });
  expect_binary<T, T>(operation::maximum, [](T a, T b) { return b > a ? b : a; });
  expect_binary<T, T>(operation::bit_and, [](T a, T b) { return static_cast<T>(a & b); });
  expect_binary<T, T>(operation::bit_or, [](T a, T b) { return static_cast<T>(a | b); });
  expect_binary<T, T>(operation::bit_xor, [](T a, T b) { return static_cast<T>(a ^ b); });
  expect_unary<T, T>(operation::bit_not, [](T a) { return static_cast<T>(~a); });
  expect_unary<bool, T>(operation::is_finite, [](T) { return true; });
}

// ---- operations of all numbers -----------------------------------------------------------------

template <class T>
class Numbers : public testing::Test {};
using number_list =
    testing::Types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                   std::uint16_t, std::uint32_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(Numbers, number_list);

TYPED_TEST(Numbers, Compare) {
  using T = TypeParam;
  expect_binary<bool, T>(operation::equal, [](T a, T b) { return a == b; });
  expect_binary<bool, T>(operation::not_equal, [](T a, T b) { return a != b; });
  expect_binary<bool, T>(operation::less, [](T a, T b) { return a < b; });
  expect_binary<bool, T>(operation::less_equal, [](T a, T b) { return a <= b; });
  expect_binary<bool, T>(operation::greater, [](T a, T b) { return a > b; });
  expect_binary<bool, T>(operation::greater_equal, [](T a, T b) { return a >= b; });
  expect_unary<bool, T>(operation::logical_not, [](T a) { return a == T(0); });
}

TEST(Booleans, ComputeAsLogic) {
  using T = bool;
  expect_binary<T, T>(operation::add, [](T a, T b) { return a || b; });
  expect_binary<T, T>(operation::multiply, [](T a, T b) { return a && b; });
  expect_binary<T, T>(operation::minimum, [](T a, T b) { return a && b; });
  expect_binary<T, T>(operation::maximum, [](T a, T b) { return a || b; });
  expect_binary<T, T>(operation::bit_and, [](T a, T b) { return a && b; });
  expect_binary<T, T>(operation::bit_or, [](T a, T b) { return a || b; });
  expect_binary<T, T>(operation::bit_xor, [](T a, T b) { return a != b; });
  expect_unary<T, T>(operation::bit_not, [](T a) { return !a; });
  expect_unary<T, T>(operation::absolute, [](T a) { return a; });
  expect_unary<T, T>(operation::is_finite, [](T) { return true; });
}

// ---- floats ------------------------------------------------------------------------------------

template <class T>
class Floats : public testing::Test {};
using float_list = testing::Types<float, double>;
TYPED_TEST_SUITE(Floats, float_list);

TYPED_TEST(Floats, RoundOnceInArithmetic) {
  using T = TypeParam;
  expect_binary<T, T>(operation::add, [](T a, T b) { return a + b; });
  expect_binary<T, T>(operation::subtract, [](T a, T b) { return a - b; });
  expect_binary<T, T>(operation::multiply, [](T a, T b) { return a * b; });
  expect_binary<T, T>(operation::divide, [](T a, T b) { return a / b; });
  expect_unary<T, T>(operation::negative, [](T a) { return -a; });
  expect_unary<T, T>(operation::absolute, [](T a) { return std::fabs(a); });
  expect_unary<T, T>(operation::square, [](T a) { return a * a; });
  expect_unary<T, T>(operation::square_root, [](T a) { return std::sqrt(a); });
  expect_unary<T, T>(operation::sign, [](T a) { return a > 0 ? T(1) : a < 0 ? T(-1) : a + T(0); });
}

TYPED_TEST(Floats, RoundToWholeNumbers) {
  using T = TypeParam;
  expect_unary<T, T>(operation::floor, [](T a) { return std::floor(a); });
  expect_unary<T, T>(operation::ceiling, [](T a) { return std::ceil(a); });
  expect_unary<T, T>(operation::truncate, [](T a) { return std::trunc(a); });
  expect_unary<T, T>(operation::round, [](T a) { return std::nearbyint(a); });
}

TYPED_TEST(Floats, DivideWithRemainderAsPython) {
  using T = TypeParam;
  // The remainder in long double is exact, and so is the quotient while it has fewer than 64 bits.
  const auto remainder = [](T a, T b) {
    long double rest = std::fmod(static_cast<long double>(a), static_cast<long double>(b));
    if (rest == 0) return std::copysign(T(0), b);
    if ((rest < 0) != (b < 0)) rest += b;
    return static_cast<T>(rest);
  };
  expect_binary<T, T>(operation::remainder, remainder);
  expect_binary<T, T>(
      operation::floor_divide,
      [](T a, T b) {
        if (b == 0 || std::isnan(a) || std::isnan(b)) return a / b;
        if (std::isinf(a)) return std::numeric_limits<T>::quiet_NaN();
        if (std::isinf(b))
          return a == 0 ? a / b : (a < 0) != (b < 0) ? T(-1) : std::copysign(T(0), a / b);
        const auto x = static_cast<long double>(a), y = static_cast<long double>(b);
        long double rest = std::fmod(x, y);
        if (rest != 0 && (rest < 0) != (b < 0)) rest += y;
        const long double quotient = std::nearbyint((x - rest) / y);
        return quotient == 0 ? std::copysign(T(0), a / b) : static_cast<T>(quotient);
      },
      [](T got, T wanted) {
        if (same(got, wanted)) return true;
        // If the quotient exceeds the whole numbers that T holds exactly, its last bit may differ.
        return std::fabs(wanted) > T(1) / std::numeric_limits<T>::epsilon() / 8 &&
               std::fabs(got - wanted) <= std::numeric_limits<T>::epsilon() * std::fabs(wanted);
      });
}

TYPED_TEST(Floats, HaveTheRemaindersOfTruncatedQuotients) {
  using T = TypeParam;
  expect_binary<T, T>(operation::truncated_remainder, [](T a, T b) {
    return static_cast<T>(std::fmod(static_cast<long double>(a), static_cast<long double>(b)));
  });
}

TYPED_TEST(Floats, OrderZerosAndLetNanWinInExtrema) {
  using T = TypeParam;
  expect_binary<T, T>(operation::minimum, [](T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == 0 && b == 0) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  });
  expect_binary<T, T>(operation::maximum, [](T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == 0 && b == 0) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  });
}

template <class T>
class AllFloats : public testing::Test {};
using all_float_list = testing::Types<float16, bfloat16, float, double>;
TYPED_TEST_SUITE(AllFloats, all_float_list);

TYPED_TEST(AllFloats, KnowNanInfinityAndZero) {
  using T = TypeParam;
  expect_unary<bool, T>(operation::is_nan, [](T a) { return std::isnan(static_cast<double>(a)); });
  expect_unary<bool, T>(operation::is_finite,
                        [](T a) { return std::isfinite(static_cast<double>(a)); });
  expect_unary<bool, T>(operation::is_infinite,
                        [](T a) { return std::isinf(static_cast<double>(a)); });
  expect_unary<bool, T>(operation::logical_not, [](T a) { return static_cast<double>(a) == 0; });
}

/// The next number after `a`: by the standard library, or by a search among all numbers of 16 bits.
template <class T>
T next_after(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::nextafter(a, b);
  } else {
    static const std::vector<double> all = [] {
      std::vector<double> values;
      for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto value = static_cast<double>(T::from_bits(static_cast<std::uint16_t>(bits)));
        if (!std::isnan(value) && (value != 0 || bits == 0)) values.push_back(value);
      }
      std::sort(values.begin(), values.end());
      return values;
    }();
    const auto from = static_cast<double>(a), to = static_cast<double>(b);
    if (std::isnan(from) || std::isnan(to)) return T(static_cast<float>(from + to));
    if (from == to) return b;
    const auto at = std::lower_bound(all.begin(), all.end(), from);
    const double next = from < to ? at[1] : at[-1];
    return T(static_cast<float>(next == 0 ? std::copysign(0.0, from) : next));
  }
}

TYPED_TEST(AllFloats, HaveSignsAndNeighbours) {
  using T = TypeParam;
  expect_unary<bool, T>(operation::sign_bit,
                        [](T a) { return std::signbit(static_cast<double>(a)); });
  expect_binary<T, T>(operation::next_after, [](T a, T b) { return next_after(a, b); });
  expect_binary<T, T>(operation::copy_sign, [](T a, T b) {
    const auto size = static_cast<double>(a), sign = static_cast<double>(b);
    return T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(
        std::copysign(size, sign)));
  });
}

// ---- complex -----------------------------------------------------------------------------------

template <class T>
class Complexes : public testing::Test {};
TYPED_TEST_SUITE(Complexes, float_list);

TYPED_TEST(Complexes, FollowThePlainFormulas) {
  using T = std::complex<TypeParam>;
  expect_binary<T, T>(operation::add,
                      [](T a, T b) { return T(a.real() + b.real(), a.imag() + b.imag()); });
  expect_binary<T, T>(operation::subtract,
                      [](T a, T b) { return T(a.real() - b.real(), a.imag() - b.imag()); });
  expect_binary<T, T>(operation::multiply, [](T a, T b) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  });
  expect_unary<T, T>(operation::negative, [](T a) { return T(-a.real(), -a.imag()); });
  expect_unary<T, T>(operation::square, [](T a) {
    return T(a.real() * a.real() - a.imag() * a.imag(), a.real() * a.imag() + a.imag() * a.real());
  });
  expect_binary<bool, T>(operation::equal, [](T a, T b) { return a == b; });
  expect_binary<bool, T>(operation::not_equal, [](T a, T b) { return a != b; });
  expect_unary<bool, T>(operation::logical_not, [](T a) { return a == T(0); });
  expect_unary<bool, T>(operation::is_nan,
                        [](T a) { return std::isnan(a.real()) || std::isnan(a.imag()); });
  expect_unary<bool, T>(operation::is_finite,
                        [](T a) { return std::isfinite(a.real()) && std::isfinite(a.imag()); });
  expect_unary<bool, T>(operation::is_infinite,
                        [](T a) { return std::isinf(a.real()) || std::isinf(a.imag()); });
}

/// Whether two complex numbers differ by less than `ulps` of their size. Infinities and NaN count
/// as equal.
template <class Part>
bool near(std::complex<Part> got, std::complex<Part> wanted, double ulps) {
  const auto finite = [](std::complex<Part> z) {
    return std::isfinite(z.real()) && std::isfinite(z.imag());
  };
  const long double size =
      std::hypot(static_cast<long double>(wanted.real()), static_cast<long double>(wanted.imag()));
  // Near the ends of the range, intermediate results may over- or underflow.
  if (!finite(wanted) || !finite(got) || size > std::numeric_limits<Part>::max() / 8 ||
      size < std::numeric_limits<Part>::min() * 1024)
    return true;
  const long double error = std::hypot(static_cast<long double>(got.real()) - wanted.real(),
                                       static_cast<long double>(got.imag()) - wanted.imag());
  return error <= ulps * std::numeric_limits<Part>::epsilon() * size;
}

TYPED_TEST(Complexes, DivideWithoutEarlyOverflow) {
  using Part = TypeParam;
  using T = std::complex<Part>;
  expect_binary<T, T>(
      operation::divide,
      [](T a, T b) {
        const std::complex<long double> x(a.real(), a.imag()), y(b.real(), b.imag());
        const std::complex<long double> quotient = x / y;
        return T(static_cast<Part>(quotient.real()), static_cast<Part>(quotient.imag()));
      },
      [](T got, T wanted) { return near<Part>(got, wanted, 8); });
  // The naive formula would square 1e30.
  const auto kernel = ops::find_kernel(operation::divide, dtype_of<T>());
  T a(Part(1e30), Part(1e30)), b(Part(1e30), Part(1e30)), out;
  std::byte* data[] = {reinterpret_cast<std::byte*>(&out), reinterpret_cast<std::byte*>(&a),
                       reinterpret_cast<std::byte*>(&b)};
  const index_t strides[6] = {sizeof(T), sizeof(T), sizeof(T), 0, 0, 0};
  kernel(data, strides, 1, 1);
  EXPECT_EQ(out, T(1, 0));
}

TYPED_TEST(Complexes, HavePartsAndConjugates) {
  using Part = TypeParam;
  using T = std::complex<Part>;
  expect_unary<T, T>(operation::conjugate, [](T a) { return T(a.real(), -a.imag()); });
  expect_unary<Part, T>(operation::real_part, [](T a) { return a.real(); });
  expect_unary<Part, T>(operation::imaginary_part, [](T a) { return a.imag(); });
}

TYPED_TEST(Complexes, HaveMagnitudeAndDirection) {
  using Part = TypeParam;
  using T = std::complex<Part>;
  expect_unary<Part, T>(
      operation::absolute,
      [](T a) {
        return static_cast<Part>(
            std::hypot(static_cast<long double>(a.real()), static_cast<long double>(a.imag())));
      },
      [](Part got, Part wanted) {
        if (same(got, wanted)) return true;
        return std::fabs(got - wanted) <=
               std::fabs(std::nextafter(wanted, std::numeric_limits<Part>::infinity()) - wanted);
      });
  expect_unary<T, T>(
      operation::sign,
      [](T a) {
        if (a == T(0)) return T(0);
        const std::complex<long double> x(a.real(), a.imag());
        const std::complex<long double> unit = x / std::abs(x);
        return T(static_cast<Part>(unit.real()), static_cast<Part>(unit.imag()));
      },
      [](T got, T wanted) { return near<Part>(got, wanted, 4); });
}

// ---- selection ---------------------------------------------------------------------------------

template <class T>
void expect_select() {
  constexpr dtype type = dtype_of<T>();
  generator random(static_cast<unsigned>(type));
  for (const extents& size : some_extents()) {
    block condition(1, input_layout(1, size, random), size.inner, size.outer);
    block a(sizeof(T), input_layout(sizeof(T), size, random), size.inner, size.outer);
    block b(sizeof(T), input_layout(sizeof(T), size, random), size.inner, size.outer);
    condition.fill<bool>(random);
    a.fill<T>(random);
    b.fill<T>(random);
    for (const ops::isa isa : usable_isas()) {
      block out(sizeof(T), distinct_layout(sizeof(T), size, random), size.inner, size.outer);
      run(ops::kernels_for(isa)
              .operations[static_cast<int>(operation::select)][static_cast<int>(type)],
          {&out, &condition, &a, &b});
      ASSERT_TRUE(out.untouched_between());
      for (index_t row = 0; row < size.outer; ++row)
        for (index_t column = 0; column < size.inner; ++column) {
          const T got = out.get<T>(column, row);
          const T wanted =
              condition.get<bool>(column, row) ? a.get<T>(column, row) : b.get<T>(column, row);
          ASSERT_EQ(std::memcmp(&got, &wanted, sizeof(T)), 0) << name(type);
        }
    }
  }
}

TEST(Select, TakesBytesOfEitherForEveryDtype) {
  [&]<class... T>(type_list<T...>) { (expect_select<T>(), ...); }(all_types{});
}

TEST(Kernels, WorkInPlace) {
  // The output is an input, element by element: of float32, and for a cast from int32 of equal
  // width.
  for (const ops::isa isa : usable_isas()) {
    const auto& table = ops::kernels_for(isa);
    std::vector<float> values(1000);
    for (int i = 0; i < 1000; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i);
    auto* bytes = reinterpret_cast<std::byte*>(values.data());
    std::byte* data[] = {bytes, bytes, bytes};
    const index_t strides[] = {4, 4, 4, 0, 0, 0};
    table.operations[static_cast<int>(operation::multiply)][static_cast<int>(dtype::float32)](
        data, strides, 1000, 1);
    for (int i = 0; i < 1000; ++i)
      ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(i) * static_cast<float>(i));

    std::vector<std::int32_t> numbers(1000);
    for (int i = 0; i < 1000; ++i) numbers[static_cast<std::size_t>(i)] = i - 500;
    auto* first = reinterpret_cast<std::byte*>(numbers.data());
    std::byte* pair[] = {first, first};
    const index_t dense[] = {4, 4, 0, 0};
    table.casts[static_cast<int>(dtype::int32)][static_cast<int>(dtype::float32)](pair, dense, 1000,
                                                                                  1);
    for (int i = 0; i < 1000; ++i) {
      float got;
      std::memcpy(&got, first + 4 * i, 4);
      ASSERT_EQ(got, static_cast<float>(i - 500));
    }
  }
}

// facts.1
TEST(OperationFacts, DescribeEveryOperation) {
  for (int number = 0; number < static_cast<int>(operation::count_); ++number) {
    const auto op = static_cast<operation>(number);
    EXPECT_EQ(ops::facts_of(op).op, op);
    EXPECT_STRNE(ops::facts_of(op).word, "");
    // Integers either have a kernel, or the rule says what becomes of them. Some public functions
    // answer for integers themselves.
    const bool takes_integers =
        ops::kernels_for(ops::isa::baseline).operations[number][static_cast<int>(dtype::int32)];
    const bool has_rule = ops::facts_of(op).operands != ops::operand_rule::same;
    const bool is_answered = op == operation::is_nan || op == operation::is_infinite ||
                             op == operation::conjugate || op == operation::real_part ||
                             op == operation::imaginary_part;
    EXPECT_EQ(takes_integers, !has_rule && !is_answered) << "operation " << number;
  }
}

TEST(Kernels, ExistForEveryOperationAndReduction) {
  for (const ops::isa isa : usable_isas()) {
    const auto& table = ops::kernels_for(isa);
    for (const auto& by_dtype : table.operations)
      EXPECT_TRUE(std::any_of(std::begin(by_dtype), std::end(by_dtype),
                              [](ops::kernel run) { return run != nullptr; }))
          << "operation " << &by_dtype - table.operations;
    for (const auto& by_dtype : table.reducers)
      EXPECT_TRUE(std::any_of(std::begin(by_dtype), std::end(by_dtype),
                              [](const ops::reducer& fold) { return fold.accumulate != nullptr; }))
          << "reduction " << &by_dtype - table.reducers;
  }
}

TEST(Kernels, ExistExactlyWhereTheInterfaceSays) {
  const auto has = [](operation op, dtype type) { return ops::find_kernel(op, type) != nullptr; };
  EXPECT_FALSE(has(operation::divide, dtype::int32));
  EXPECT_FALSE(has(operation::subtract, dtype::boolean));
  EXPECT_FALSE(has(operation::negative, dtype::boolean));
  EXPECT_FALSE(has(operation::less, dtype::complex64));
  EXPECT_FALSE(has(operation::minimum, dtype::complex128));
  EXPECT_FALSE(has(operation::atan2, dtype::complex64));
  EXPECT_FALSE(has(operation::bit_and, dtype::float32));
  EXPECT_FALSE(has(operation::shift_left, dtype::boolean));
  EXPECT_FALSE(has(operation::sine, dtype::float16));
  EXPECT_FALSE(has(operation::add, dtype::float8_e5m2));
  EXPECT_TRUE(has(operation::select, dtype::float8_e5m2));
  EXPECT_TRUE(has(operation::exponential, dtype::complex128));
}

}  // namespace
}  // namespace shale::test
