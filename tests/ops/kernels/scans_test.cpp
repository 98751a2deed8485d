// Tests scanners for every dtype, layout, scanned axis and instruction set. The oracle goes through
// the values one by one, in wider arithmetic.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "ops/kernels/blocks.hpp"
#include "ops/kernels/expected_scans.hpp"

namespace shale::test {
namespace {

using ops::scan;

// The type has 113 bits, so sums of a few thousand doubles of similar size are nearly exact.
__extension__ typedef __float128 quad;

/// The first `count` values. Those of one lane come one by one, and then those of the next lane. It
/// is not inlined, so that it is compiled once for a dtype.
template <class T>
[[gnu::noinline]] void take_in(std::vector<T>& so_far, const std::byte* values, index_t count) {
  if (count <= static_cast<index_t>(so_far.size())) so_far.clear();
  for (auto k = static_cast<index_t>(so_far.size()); k < count; ++k)
    so_far.push_back(read<T>(values + k * static_cast<index_t>(sizeof(T))));
}

/// `draw(random)` gives a T; `agrees(got, values)` compares an Out with the values up to its own,
/// of which the first is what the state began with.
template <class Out, class T, class Draw, class Agrees>
void expect_scanned(scan kind, Draw draw, Agrees agrees) {
  expect_scan({kind, dtype_of<T>(), dtype_of<Out>(),
               [draw](std::byte* to, generator& random) { write<T>(to, draw(random)); },
               [agrees, so_far = std::vector<T>()](const std::byte* got, const std::byte* values,
                                                   index_t count) mutable {
                 take_in(so_far, values, count);
                 return agrees(read<Out>(got), so_far);
               },
               show_bytes<Out>});
}

template <class T>
class IntegerScans : public testing::Test {};
using integer_list = testing::Types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                    std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(IntegerScans, integer_list);

// The oracle keeps what it has computed for all but the last value.
template <class T, class Value, class Step>
auto running(Value start, Step step) {
  return [=, value = start, seen = std::size_t{0}](const std::vector<T>& values) mutable {
    if (values.size() <= seen) {
      value = start;
      seen = 0;
    }
    for (; seen < values.size(); ++seen) value = step(value, values[seen]);
    return value;
  };
}

TYPED_TEST(IntegerScans, AreExactModulo64Bits) {
  using T = TypeParam;
  using Total = std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, std::int64_t,
                                   std::uint64_t>;
  const auto draw = [](generator& random) { return static_cast<T>(random()); };
  expect_scanned<Total, T>(scan::sum, draw,
                           [sum = running<T>(std::uint64_t{0}, [](std::uint64_t a, T b) {
                              return a + static_cast<std::uint64_t>(b);
                            })](Total got, const std::vector<T>& values) mutable {
                             return got == static_cast<Total>(sum(values));
                           });
  const auto odd = [](generator& random) { return static_cast<T>(2 * random() + 1); };
  expect_scanned<Total, T>(scan::product, odd,
                           [product = running<T>(std::uint64_t{1}, [](std::uint64_t a, T b) {
                              return a * static_cast<std::uint64_t>(b);
                            })](Total got, const std::vector<T>& values) mutable {
                             return got == static_cast<Total>(product(values));
                           });
}

template <class T>
void expect_extrema() {
  const auto draw = [](generator& random) {
    return random() % 700 == 0 ? some_value<T>(random)
                               : convert<T>(static_cast<double>(random() % 90));
  };
  for (const bool largest : {false, true}) {
    const auto better = [largest](std::optional<T> a, T b) -> std::optional<T> {
      if (!a) return b;
      const auto x = convert<double>(*a), y = convert<double>(b);
      if (x != x) return a;
      if (y != y) return b;
      if (x == y && x == 0) return (std::signbit(y) != largest) ? b : a;
      if constexpr (std::is_integral_v<T>) return (largest ? b > *a : b < *a) ? b : a;
      else return (largest ? y > x : y < x) ? b : a;
    };
    expect_scanned<T, T>(
        largest ? scan::maximum : scan::minimum, draw,
        [best = running<T>(std::optional<T>(), better)](
            T got, const std::vector<T>& values) mutable { return same(got, *best(values)); });
  }
}

TYPED_TEST(IntegerScans, FindExtrema) { expect_extrema<TypeParam>(); }

template <class T>
class FloatScans : public testing::Test {};
using float_list = testing::Types<float16, bfloat16, float, double>;
TYPED_TEST_SUITE(FloatScans, float_list);

/// The relative error of one rounding to T.
template <class T>
constexpr double rounding = std::is_same_v<T, double>    ? 0x1p-53
                            : std::is_same_v<T, float>   ? 0x1p-24
                            : std::is_same_v<T, float16> ? 0x1p-11
                                                         : 0x1p-8;

TYPED_TEST(FloatScans, FindExtrema) { expect_extrema<TypeParam>(); }

// The terms are whole numbers and fractions of both signs, so sums are much smaller than the sum of
// their magnitudes.
TYPED_TEST(FloatScans, AddInDoublesOrBetter) {
  using T = TypeParam;
  const auto draw = [](generator& random) {
    return T(static_cast<float>(std::uniform_real_distribution<double>(-1, 1)(random)));
  };
  expect_scanned<T, T>(scan::sum, draw, [sum = running<T>(quad{0}, [](quad a, T b) {
                                           return a + static_cast<quad>(static_cast<double>(b));
                                         })](T got, const std::vector<T>& values) mutable {
    const auto wanted = static_cast<double>(sum(values));
    const double accumulated =
        std::is_same_v<T, double> ? 1e-28 : static_cast<double>(values.size()) * 0x1p-52;
    return std::fabs(static_cast<double>(got) - wanted) <=
           std::fabs(wanted) * rounding<T> * 1.01 + accumulated +
               (std::is_same_v<T, float16> ? 0x1p-25 : 0);
  });
}

TYPED_TEST(FloatScans, MultiplyInDoubles) {
  using T = TypeParam;
  const auto draw = [](generator& random) {
    const double size = std::uniform_real_distribution<double>(0.9, 1.1)(random);
    return T(static_cast<float>(random() % 2 == 0 ? size : -size));
  };
  expect_scanned<T, T>(scan::product, draw, [product = running<T>(quad{1}, [](quad a, T b) {
                                               return a * static_cast<quad>(static_cast<double>(b));
                                             })](T got, const std::vector<T>& values) mutable {
    const auto wanted = static_cast<double>(product(values));
    if (std::is_same_v<T, float16> && (std::fabs(wanted) > 60000 || std::fabs(wanted) < 1e-4))
      return true;
    return std::fabs(static_cast<double>(got) - wanted) <=
           std::fabs(wanted) * (rounding<T> * 1.01 + static_cast<double>(values.size()) * 0x1p-52);
  });
}

// Infinities stay, and opposite ones make a NaN; what came before is not lost.
TYPED_TEST(FloatScans, KeepInfinities) {
  using T = TypeParam;
  const auto draw = [](generator& random) {
    const auto huge = std::numeric_limits<double>::infinity();
    const std::uint64_t choice = random() % 900;
    return convert<T>(choice == 0 ? huge : choice == 1 ? -huge : 1.0);
  };
  expect_scanned<T, T>(scan::sum, draw, [sum = running<T>(0.0, [](double a, T b) {
                                           return a + convert<double>(b);
                                         })](T got, const std::vector<T>& values) mutable {
    return same(got, convert<T>(sum(values)));
  });
}

template <class Part>
void expect_complex() {
  using T = std::complex<Part>;
  using L = std::complex<long double>;
  const auto draw = [](generator& random) {
    const auto angle = std::uniform_real_distribution<double>(-3, 3)(random);
    return T(static_cast<Part>(std::cos(angle)), static_cast<Part>(std::sin(angle)));
  };
  const auto near = [](const T& got, const L& wanted, std::size_t count) {
    const long double most =
        static_cast<long double>(std::numeric_limits<Part>::epsilon()) * (1 + std::abs(wanted)) +
        static_cast<long double>(count) * 0x1p-50L;
    return std::abs(L(got) - wanted) <= most;
  };
  expect_scanned<T, T>(scan::sum, draw, [&, sum = running<T>(L(0), [](L a, T b) {
                                              return a + L(b);
                                            })](T got, const std::vector<T>& values) mutable {
    return near(got, sum(values), values.size());
  });
  expect_scanned<T, T>(scan::product, draw, [&, product = running<T>(L(1), [](L a, T b) {
                                                  return a * L(b);
                                                })](T got, const std::vector<T>& values) mutable {
    return near(got, product(values), values.size());
  });
}

TEST(ComplexScans, AddAndMultiplyBothParts) {
  expect_complex<float>();
  expect_complex<double>();
}

TEST(Scanners, ExistForWhatReducersExist) {
  for (const scan kind : {scan::sum, scan::product, scan::minimum, scan::maximum})
    for (int type = 0; type < ops::kernels::dtype_limit; ++type) {
      const auto reducer = ops::find_reducer(ops::reduction_of(kind), static_cast<dtype>(type));
      const auto scanner = ops::find_scanner(kind, static_cast<dtype>(type));
      ASSERT_EQ(reducer != nullptr, scanner != nullptr) << static_cast<int>(kind) << ' ' << type;
      if (!reducer) continue;
      EXPECT_EQ(reducer->result, scanner->result);
    }
}

}  // namespace
}  // namespace shale::test
