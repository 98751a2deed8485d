// Tests reducers for every dtype, layout, arrangement of states and instruction set. The oracle
// computes in wider arithmetic.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "ops/kernels/blocks.hpp"
#include "ops/kernels/expected_reductions.hpp"

namespace shale::test {
namespace {

using ops::reduction;

// The type has 113 bits, so sums of a few thousand doubles of similar size are nearly exact.
__extension__ typedef __float128 quad;

// Functions that every oracle of a dtype calls are not inlined, so that they are compiled once for
// the dtype.

template <class T>
[[gnu::noinline]] std::vector<T> values_of(const std::byte* values, index_t count) {
  std::vector<T> result;
  for (index_t i = 0; i < count; ++i)
    result.push_back(read<T>(values + i * static_cast<index_t>(sizeof(T))));
  return result;
}

/// `value(random)` draws a T; `agrees(got, values)` takes an Out and a vector of T.
template <class Out, class T, class Value, class Agrees>
void expect_reduced(reduction op, Value value, Agrees agrees, double parameter = 0) {
  expect_reduction({op, dtype_of<T>(), dtype_of<Out>(), parameter,
                    [value](std::byte* to, generator& random) { write<T>(to, value(random)); },
                    [agrees](const std::byte* got, const std::byte* values, index_t count) {
                      return agrees(read<Out>(got), values_of<T>(values, count));
                    }});
}

template <class T>
[[gnu::noinline]] testing::AssertionResult equal_to(T got, T wanted) {
  if (same(got, wanted)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "got " << show(got) << ", wanted " << show(wanted);
}

// ---- integers ----------------------------------------------------------------------------------

template <class T>
class IntegerReducers : public testing::Test {};
using integer_list = testing::Types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                    std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(IntegerReducers, integer_list);

TYPED_TEST(IntegerReducers, AreExactModulo64Bits) {
  using T = TypeParam;
  using Total = std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, std::int64_t,
                                   std::uint64_t>;
  const auto value = [](generator& random) { return static_cast<T>(random()); };
  expect_reduced<Total, T>(reduction::sum, value, [](Total got, const std::vector<T>& values) {
    std::uint64_t sum = 0;
    for (const T element : values) sum += static_cast<std::uint64_t>(element);
    return equal_to(got, static_cast<Total>(sum));
  });
  expect_reduced<Total, T>(reduction::product, value, [](Total got, const std::vector<T>& values) {
    std::uint64_t product = 1;
    for (const T element : values) product *= static_cast<std::uint64_t>(element);
    return equal_to(got, static_cast<Total>(product));
  });
  expect_reduced<T, T>(reduction::minimum, value, [](T got, const std::vector<T>& values) {
    T best = values[0];
    for (const T element : values) best = element < best ? element : best;
    return equal_to(got, best);
  });
  expect_reduced<T, T>(reduction::maximum, value, [](T got, const std::vector<T>& values) {
    T best = values[0];
    for (const T element : values) best = element > best ? element : best;
    return equal_to(got, best);
  });
}

TYPED_TEST(IntegerReducers, MeansAreRoundedOnceOrTwice) {
  using T = TypeParam;
  expect_reduced<double, T>(
      reduction::mean, [](generator& random) { return static_cast<T>(random()); },
      [](double got, const std::vector<T>& values) {
        __extension__ __int128 sum = 0;
        for (const T element : values) sum += element;
        const auto wanted =
            static_cast<double>(static_cast<quad>(sum) / static_cast<quad>(values.size()));
        if (std::fabs(got - wanted) <= std::fabs(wanted) * 0x1p-52)
          return testing::AssertionSuccess();
        return testing::AssertionFailure() << "got " << show(got) << ", wanted " << show(wanted);
      });
}

// ---- truth -------------------------------------------------------------------------------------

template <class T>
class TruthReducers : public testing::Test {};
using truth_list =
    testing::Types<bool, std::int8_t, std::uint16_t, std::int32_t, std::uint64_t, float16, bfloat16,
                   float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(TruthReducers, truth_list);

TYPED_TEST(TruthReducers, CountWhatIsNotZero) {
  using T = TypeParam;
  const auto nonzero = [](T value) { return convert<bool>(value); };
  // Values are mostly zeros of both signs, or mostly nonzero.
  for (const unsigned zeros : {1u, 30u}) {
    const auto value = [zeros](generator& random) {
      if (random() % 31 < zeros) return random() % 2 ? T() : convert<T>(-0.0);
      return convert<T>(static_cast<float>(random() % 3 + 1));
    };
    expect_reduced<std::int64_t, T>(
        reduction::count_nonzero, value, [&](std::int64_t got, const std::vector<T>& values) {
          return equal_to<std::int64_t>(got, std::count_if(values.begin(), values.end(), nonzero));
        });
    expect_reduced<bool, T>(reduction::any, value, [&](bool got, const std::vector<T>& values) {
      return equal_to(got, std::any_of(values.begin(), values.end(), nonzero));
    });
    expect_reduced<bool, T>(reduction::all, value, [&](bool got, const std::vector<T>& values) {
      return equal_to(got, std::all_of(values.begin(), values.end(), nonzero));
    });
  }
}

// ---- floats ------------------------------------------------------------------------------------

template <class T>
class FloatReducers : public testing::Test {};
using float_list = testing::Types<float16, bfloat16, float, double>;
TYPED_TEST_SUITE(FloatReducers, float_list);

/// Half a unit in the last place of T's mantissa.
template <class T>
constexpr double rounding = std::is_same_v<T, double>    ? 0x1p-53
                            : std::is_same_v<T, float>   ? 0x1p-24
                            : std::is_same_v<T, float16> ? 0x1p-11
                                                         : 0x1p-8;

/// |got - wanted| <= relative |wanted| + absolute, and one subnormal step of float16.
template <class T>
[[gnu::noinline]] testing::AssertionResult within(T got, quad wanted, double relative,
                                                  quad absolute) {
  const auto size = wanted < 0 ? -wanted : wanted;
  const quad difference = static_cast<quad>(static_cast<double>(got)) - wanted;
  const quad error = difference < 0 ? -difference : difference;
  if (error <= size * relative + absolute + 0x1p-25) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "got " << show(got) << ", wanted " << show(static_cast<double>(wanted)) << ", error "
         << show(static_cast<double>(error));
}

TYPED_TEST(FloatReducers, SumBetterThanPairwise) {
  using T = TypeParam;
  // Large values cancel, so that the sum is far smaller than the terms.
  const auto value = [](generator& random) {
    return T(static_cast<float>(std::uniform_real_distribution<double>(-1, 1)(random)));
  };
  const auto check = [](T got, const std::vector<T>& values, double count) {
    quad sum = 0, sizes = 0;
    for (const T element : values) {
      const auto wide = static_cast<double>(element);
      sum += wide;
      sizes += std::fabs(wide);
    }
    // The rounding errors that are allowed: of sums in twice the precision (float64), or in double.
    const quad lost = sizes * static_cast<double>(values.size()) *
                      (std::is_same_v<T, double> ? 0x1p-104 : 0x1p-53);
    return within<T>(got, sum / count, 2 * rounding<T>, lost / count);
  };
  expect_reduced<T, T>(reduction::sum, value,
                       [&](T got, const std::vector<T>& values) { return check(got, values, 1); });
  expect_reduced<T, T>(reduction::mean, value, [&](T got, const std::vector<T>& values) {
    return check(got, values, static_cast<double>(values.size()));
  });
}

TYPED_TEST(FloatReducers, MultiplyInDouble) {
  using T = TypeParam;
  expect_reduced<T, T>(
      reduction::product,
      [](generator& random) {
        return T(static_cast<float>(std::uniform_real_distribution<double>(0.99, 1.01)(random)));
      },
      [](T got, const std::vector<T>& values) {
        quad product = 1;
        for (const T element : values) product *= static_cast<double>(element);
        return within<T>(got, product,
                         2 * rounding<T> + static_cast<double>(values.size()) * 0x1p-53, 0);
      });
}

TYPED_TEST(FloatReducers, FindExtremaWithOrderedZeros) {
  using T = TypeParam;
  const auto below = [](T a, T b) {
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    return x < y || (x == 0 && y == 0 && std::signbit(x) && !std::signbit(y));
  };
  // The numbers have one sign and the zeros both, so that a zero is the extremum. There are
  // infinities, and sometimes NaN.
  for (const int kind : {0, 1, 2, 3}) {
    const auto value = [kind](generator& random) {
      if (kind == 3 && random() % 700 == 0) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        return T(random() % 2 ? nan : -nan);
      }
      if (random() % 40 == 0) return random() % 5 == 0 ? T(-0.0f) : T(0.0f);
      const float size = random() % 90 == 0 ? std::numeric_limits<float>::infinity()
                                            : static_cast<float>(random() % 1000 + 1);
      return kind == 0 ? T(size) : kind == 1 ? T(-size) : random() % 2 ? T(size) : T(-size);
    };
    const auto check = [&](T got, const std::vector<T>& values, bool largest) {
      T best = values[0];
      for (const T element : values) {
        if (static_cast<double>(element) != static_cast<double>(element))
          return equal_to(got, element);
        if (largest ? below(best, element) : below(element, best)) best = element;
      }
      return equal_to(got, best);
    };
    expect_reduced<T, T>(reduction::minimum, value, [&](T got, const std::vector<T>& values) {
      return check(got, values, false);
    });
    expect_reduced<T, T>(reduction::maximum, value, [&](T got, const std::vector<T>& values) {
      return check(got, values, true);
    });
  }
}

template <class T>
quad variance_of(const std::vector<T>& values, double correction) {
  quad sum = 0, squares = 0;
  const auto count = static_cast<double>(values.size());
  for (const T element : values) sum += static_cast<double>(element);
  const quad mean = sum / count;
  for (const T element : values) {
    const quad away = static_cast<double>(element) - mean;
    squares += away * away;
  }
  return squares / (count - correction);
}

template <class T, class Value>
void expect_spread(Value value) {
  for (const double correction : {0.0, 1.0}) {
    expect_reduced<T, T>(
        reduction::variance, value,
        [&](T got, const std::vector<T>& values) {
          if (static_cast<double>(values.size()) <= correction)
            return equal_to(got, T(std::numeric_limits<float>::quiet_NaN()));
          return within<T>(got, variance_of(values, correction), 2 * rounding<T> + 1e-12, 1e-14);
        },
        correction);
  }
  expect_reduced<T, T>(reduction::deviation, value, [&](T got, const std::vector<T>& values) {
    const double wanted = std::sqrt(static_cast<double>(variance_of(values, 0)));
    return within<T>(got, wanted, 2 * rounding<T> + 1e-12, 1e-7);
  });
}

TYPED_TEST(FloatReducers, MeasureSpreadBesideALargeOffset) {
  using T = TypeParam;
  const double offset = std::is_same_v<T, double> ? 1e9 : 100;
  expect_spread<T>([offset](generator& random) {
    return convert<T>(offset + std::normal_distribution<double>(0, 1)(random));
  });
}

// The first value of a row or column is far from the others now and then.
TYPED_TEST(FloatReducers, MeasureSpreadOfValuesWithOutliers) {
  using T = TypeParam;
  const double far = std::is_same_v<T, float16> ? 40 : 3e4;
  expect_spread<T>([far](generator& random) {
    const double value = std::normal_distribution<double>(3, 1)(random);
    return convert<T>(random() % 16 == 0 ? far * value : value);
  });
}

// ---- long integers -----------------------------------------------------------------------------

template <class T>
class LongReducers : public testing::Test {};
using long_list = testing::Types<std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(LongReducers, long_list);

// A double holds integers up to 2^53, so the elements must not be rounded before they are
// subtracted.
TYPED_TEST(LongReducers, MeasureSpreadOfIntegersThatNoDoubleHolds) {
  using T = TypeParam;
  using limits = std::numeric_limits<T>;
  const auto variance = [](const std::vector<T>& values) {
    quad sum = 0, squares = 0;
    const auto count = static_cast<double>(values.size());
    for (const T element : values) sum += static_cast<quad>(element);
    for (const T element : values) {
      const quad away = static_cast<quad>(element) - sum / count;
      squares += away * away;
    }
    return squares / count;
  };
  const std::vector<std::function<T(generator&)>> kinds = {
      [](generator& random) { return static_cast<T>((T{1} << 60) + static_cast<T>(random() % 3)); },
      [](generator& random) {
        return static_cast<T>(limits::max() - static_cast<T>(random() % 100));
      },
      [](generator& random) {
        return static_cast<T>(limits::min() + static_cast<T>(random() % 100));
      },
      [](generator& random) { return random() % 2 == 0 ? limits::min() : limits::max(); },
      [](generator& random) { return static_cast<T>(random()); },
      [](generator& random) { return static_cast<T>(random() % 100); }};
  for (const auto& value : kinds) {
    expect_reduced<double, T>(reduction::variance, value,
                              [&](double got, const std::vector<T>& values) {
                                return within<double>(got, variance(values), 1e-12, 1e-9);
                              });
    expect_reduced<double, T>(
        reduction::deviation, value, [&](double got, const std::vector<T>& values) {
          return within<double>(got, std::sqrt(static_cast<double>(variance(values))), 1e-12, 1e-4);
        });
  }
}

// ---- complex -----------------------------------------------------------------------------------

template <class T>
class ComplexReducers : public testing::Test {};
using part_list = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexReducers, part_list);

TYPED_TEST(ComplexReducers, SumMultiplyAndSpread) {
  using Part = TypeParam;
  using T = std::complex<Part>;
  const auto value = [](generator& random) {
    std::uniform_real_distribution<double> part(-1, 1);
    const auto real = static_cast<Part>(part(random));
    return T(real, static_cast<Part>(part(random)));
  };
  const auto sums = [](const std::vector<T>& values) {
    std::pair<quad, quad> sum{0, 0};
    for (const T element : values) {
      sum.first += element.real();
      sum.second += element.imag();
    }
    return sum;
  };
  const auto check = [&](T got, const std::vector<T>& values, double count) {
    const auto sum = sums(values);
    const quad lost = static_cast<double>(values.size() * values.size()) *
                      (std::is_same_v<Part, double> ? 0x1p-104 : 0x1p-53);
    const auto real = within<Part>(got.real(), sum.first / count, 2 * rounding<Part>, lost / count);
    return real ? within<Part>(got.imag(), sum.second / count, 2 * rounding<Part>, lost / count)
                : real;
  };
  expect_reduced<T, T>(reduction::sum, value,
                       [&](T got, const std::vector<T>& values) { return check(got, values, 1); });
  expect_reduced<T, T>(reduction::mean, value, [&](T got, const std::vector<T>& values) {
    return check(got, values, static_cast<double>(values.size()));
  });
  expect_reduced<T, T>(
      reduction::product,
      [](generator& random) {
        return static_cast<T>(std::polar(std::uniform_real_distribution<double>(0.99, 1.01)(random),
                                         std::uniform_real_distribution<double>(-3, 3)(random)));
      },
      [](T got, const std::vector<T>& values) {
        std::complex<long double> product = 1;
        for (const T element : values)
          product *= std::complex<long double>(element.real(), element.imag());
        const long double error =
            std::abs(std::complex<long double>(got.real(), got.imag()) - product);
        if (error <=
            std::abs(product) * (2 * rounding<Part> + static_cast<double>(values.size()) * 0x1p-51))
          return testing::AssertionSuccess();
        return testing::AssertionFailure() << "got " << show(got);
      });
  expect_reduced<Part, T>(reduction::variance, value, [&](Part got, const std::vector<T>& values) {
    const auto sum = sums(values);
    const auto count = static_cast<double>(values.size());
    quad squares = 0;
    for (const T element : values) {
      const quad real = element.real() - sum.first / count,
                 imaginary = element.imag() - sum.second / count;
      squares += real * real + imaginary * imaginary;
    }
    return within<Part>(got, squares / count, 2 * rounding<Part> + 1e-13, 1e-15);
  });
}

// ---- states ------------------------------------------------------------------------------------

TEST(Reducers, MergeInOrderAsIfAccumulatedTogether) {
  generator random(3);
  std::vector<double> values(3000);
  for (double& element : values) element = std::uniform_real_distribution<double>(0, 1)(random);
  const auto over = [&](reduction op, std::initializer_list<index_t> cuts) {
    const ops::reducer& how = *ops::find_reducer(op, dtype::float64);
    std::vector<std::uint64_t> total(how.state_bytes / 8), part(how.state_bytes / 8);
    auto* into = reinterpret_cast<std::byte*>(total.data());
    auto* first = reinterpret_cast<std::byte*>(part.data());
    how.start(into, 1);
    index_t position = 0;
    for (const index_t end : cuts) {
      how.start(first, 1);
      if (end > position) {
        std::byte* data[] = {first, reinterpret_cast<std::byte*>(values.data() + position)};
        const index_t strides[] = {0, 8, 0, 0};
        how.accumulate(data, strides, end - position, 1);
      }
      how.merge(into, first, 1);
      position = end;
    }
    double result;
    how.finish(into, reinterpret_cast<std::byte*>(&result), 1, 0);
    return result;
  };
  for (const reduction op : {reduction::sum, reduction::mean, reduction::minimum,
                             reduction::maximum, reduction::variance, reduction::deviation}) {
    const double whole = over(op, {3000});
    EXPECT_NEAR(over(op, {0, 1, 700, 701, 3000, 3000}), whole, whole * 1e-14);
  }
}

TEST(Reducers, OfNothingGiveTheNeutralValue) {
  const auto empty = [](reduction op) {
    const ops::reducer& how = *ops::find_reducer(op, dtype::float64);
    std::vector<std::uint64_t> state(how.state_bytes / 8);
    auto* first = reinterpret_cast<std::byte*>(state.data());
    how.start(first, 1);
    double result;
    how.finish(first, reinterpret_cast<std::byte*>(&result), 1, 0);
    return result;
  };
  EXPECT_EQ(empty(reduction::sum), 0);
  EXPECT_EQ(empty(reduction::product), 1);
  EXPECT_TRUE(std::isnan(empty(reduction::mean)));
  EXPECT_TRUE(std::isnan(empty(reduction::variance)));
}

TEST(Reducers, SumInfinitiesAsAdditionDoes) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto sum = [](std::vector<double> values) {
    const ops::reducer& how = *ops::find_reducer(reduction::sum, dtype::float64);
    std::vector<std::uint64_t> state(how.state_bytes / 8);
    std::byte* data[] = {reinterpret_cast<std::byte*>(state.data()),
                         reinterpret_cast<std::byte*>(values.data())};
    const index_t strides[] = {0, 8, 0, 0};
    how.start(data[0], 1);
    how.accumulate(data, strides, static_cast<index_t>(values.size()), 1);
    double result;
    how.finish(data[0], reinterpret_cast<std::byte*>(&result), 1, 0);
    return result;
  };
  EXPECT_EQ(sum({1, infinity, 2}), infinity);
  EXPECT_EQ(sum({1, -infinity, 2}), -infinity);
  EXPECT_TRUE(std::isnan(sum({infinity, 1, -infinity})));
  EXPECT_EQ(sum({1e16, 1, -1e16}), 1);
}

TEST(Reducers, ExistForComputingTypesOnly) {
  EXPECT_EQ(ops::find_reducer(reduction::sum, dtype::float8_e4m3fn), nullptr);
  EXPECT_EQ(ops::find_reducer(reduction::minimum, dtype::complex64), nullptr);
  for (int type = 1; type <= 15; ++type) {
    EXPECT_NE(ops::find_reducer(reduction::sum, static_cast<dtype>(type)), nullptr);
    EXPECT_NE(ops::find_reducer(reduction::variance, static_cast<dtype>(type)), nullptr);
    EXPECT_NE(ops::find_reducer(reduction::count_nonzero, static_cast<dtype>(type)), nullptr);
  }
}

}  // namespace
}  // namespace shale::test
