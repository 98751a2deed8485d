// Tests every function and operator of expressions by name, and the arguments that they refuse. The
// kernels have tests of their own.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <ostream>

#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/functions.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::text_of;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

std::vector<double> numbers() {
  return {-7.5, -2, -1, -0.5, -0.0, 0.0, 0.25, 0.5, 1, 2.5, 3, none};
}

tensor tensor_of(const std::vector<double>& values) {
  tensor made = tensor::empty({static_cast<index_t>(values.size())}, dtype::float64);
  std::copy(values.begin(), values.end(), made.elements<double>().begin());
  return made;
}

struct function_of_one {
  const char* name;
  std::function<expr(const expr&)> made;
  std::function<double(double)> wanted;
};
struct function_of_two {
  const char* name;
  std::function<expr(const expr&, const expr&)> made;
  std::function<double(double, double)> wanted;
};

std::ostream& operator<<(std::ostream& to, const function_of_one& function) {
  return to << function.name;
}
std::ostream& operator<<(std::ostream& to, const function_of_two& function) {
  return to << function.name;
}

#define SAME(name)                                                                      \
  function_of_one {                                                                     \
#name, [](const expr& a) { return name(a); }, [](double a) { return std::name(a); } \
  }

class FunctionOfOne : public testing::TestWithParam<function_of_one> {};

TEST_P(FunctionOfOne, IsWhatItsNameSays) {
  const auto got =
      elements_of<double>(eval(astype(GetParam().made(tensor_of(numbers())), dtype::float64)));
  for (std::size_t i = 0; i < numbers().size(); ++i) {
    const double wanted = GetParam().wanted(numbers()[i]);
    if (std::isnan(wanted)) EXPECT_TRUE(std::isnan(got[i])) << numbers()[i];
    else EXPECT_DOUBLE_EQ(got[i], wanted) << numbers()[i];
  }
}

INSTANTIATE_TEST_SUITE_P(
    Expr, FunctionOfOne,
    testing::Values(
        SAME(abs), SAME(sqrt), SAME(exp), SAME(log), SAME(log2), SAME(log10), SAME(sin), SAME(cos),
        SAME(tan), SAME(asin), SAME(acos), SAME(atan), SAME(sinh), SAME(cosh), SAME(tanh),
        SAME(exp2), SAME(expm1), SAME(log1p), SAME(asinh), SAME(acosh), SAME(atanh), SAME(cbrt),
        SAME(floor), SAME(ceil), SAME(trunc), SAME(isnan), SAME(isfinite),
        function_of_one{"round", [](const expr& a) { return round(a); },
                        [](double a) { return std::nearbyint(a); }},
        function_of_one{"negative", [](const expr& a) { return -a; }, [](double a) { return -a; }},
        function_of_one{"square", [](const expr& a) { return square(a); },
                        [](double a) { return a * a; }},
        function_of_one{"sign", [](const expr& a) { return sign(a); },
                        [](double a) { return std::isnan(a) ? a : double(a > 0) - double(a < 0); }},
        function_of_one{"logical_not", [](const expr& a) { return logical_not(a); },
                        [](double a) { return double(a == 0); }},
        function_of_one{"clamp", [](const expr& a) { return clip(a, -1, 2); },
                        [](double a) { return a < -1  ? -1
                                              : a > 2 ? 2
                                                      : a; }},
        function_of_one{"where", [](const expr& a) { return where(a > 0, a, 9.0); },
                        [](double a) { return a > 0 ? a : 9; }}),
    [](const auto& made) { return made.param.name; });

class FunctionOfTwo : public testing::TestWithParam<function_of_two> {};

TEST_P(FunctionOfTwo, IsWhatItsNameSays) {
  const auto count = static_cast<index_t>(numbers().size());
  const tensor a = tensor_of(numbers());
  const expr both = GetParam().made(expr(a).reshape({count, 1}), a);
  const auto got = elements_of<double>(eval(astype(both, dtype::float64)));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double x = numbers()[i / numbers().size()], y = numbers()[i % numbers().size()];
    const double wanted = GetParam().wanted(x, y);
    if (std::isnan(wanted)) EXPECT_TRUE(std::isnan(got[i])) << x << ", " << y;
    else EXPECT_DOUBLE_EQ(got[i], wanted) << x << ", " << y;
  }
}

// The result has the sign of the divisor, as Python's % has.
double remainder_of(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

#define OPERATOR(name, symbol)                                             \
  function_of_two {                                                        \
    name, [](const expr& a, const expr& b) { return a symbol b; },         \
        [](double a, double b) { return static_cast<double>(a symbol b); } \
  }

INSTANTIATE_TEST_SUITE_P(
    Expr, FunctionOfTwo,
    testing::Values(
        OPERATOR("plus", +), OPERATOR("minus", -), OPERATOR("times", *), OPERATOR("over", /),
        OPERATOR("equal", ==), OPERATOR("different", !=), OPERATOR("less", <),
        OPERATOR("at_most", <=), OPERATOR("greater", >), OPERATOR("at_least", >=),
        function_of_two{"remainder", [](const expr& a, const expr& b) { return a % b; },
                        remainder_of},
        function_of_two{"floor_divide",
                        [](const expr& a, const expr& b) { return floor_divide(a, b); },
                        [](double a, double b) { return b == 0 ? a / b : std::floor(a / b); }},
        function_of_two{"pow", [](const expr& a, const expr& b) { return pow(a, b); },
                        [](double a, double b) { return std::pow(a, b); }},
        function_of_two{"atan2", [](const expr& a, const expr& b) { return atan2(a, b); },
                        [](double a, double b) { return std::atan2(a, b); }},
        function_of_two{"hypot", [](const expr& a, const expr& b) { return hypot(a, b); },
                        [](double a, double b) { return std::hypot(a, b); }},
        function_of_two{"minimum", [](const expr& a, const expr& b) { return minimum(a, b); },
                        [](double a, double b) { return std::isnan(a) || b > a ? a : b; }},
        function_of_two{"maximum", [](const expr& a, const expr& b) { return maximum(a, b); },
                        [](double a, double b) { return std::isnan(a) || b < a ? a : b; }}),
    [](const auto& made) { return made.param.name; });

TEST(ExprFunctions, OfBitsAndTruth) {
  const tensor a = tensor::of({0, 1, 6, -1}), b = tensor::of({3, 5, 3, 8});
  const auto bits = [](const expr& value) { return elements_of<std::int32_t>(eval(value)); };
  EXPECT_EQ(bits(expr(a) & b), (std::vector<std::int32_t>{0, 1, 2, 8}));
  EXPECT_EQ(bits(expr(a) | b), (std::vector<std::int32_t>{3, 5, 7, -1}));
  EXPECT_EQ(bits(expr(a) ^ b), (std::vector<std::int32_t>{3, 4, 5, -9}));
  EXPECT_EQ(bits(~expr(a)), (std::vector<std::int32_t>{-1, -2, -7, 0}));
  // Integers are never NaN, so nothing is read.
  EXPECT_EQ(elements_of<bool>(eval(isnan(a))), std::vector<bool>(4, false));
  EXPECT_EQ(elements_of<bool>(eval(isfinite(a))), std::vector<bool>(4, true));
  EXPECT_EQ(code_of([] { eval(expr(tensor_of({1})) & 1); }), errc::invalid_argument);
}

TEST(ExprFunctions, OfComplexNumbers) {
  using value = std::complex<double>;
  const std::vector<value> bases{{0, 0}, {1, 2}, {-3, 0.5}, {0, -1}};
  const std::vector<value> exponents{{0, 0}, {2, 0}, {0.5, -1}, {3, 0}};
  const auto complex_tensor = [](const std::vector<value>& values) {
    tensor made = tensor::empty({static_cast<index_t>(values.size())}, dtype::complex128);
    std::copy(values.begin(), values.end(), reinterpret_cast<value*>(made.data()));
    return made;
  };
  const tensor got = eval(pow(complex_tensor(bases), complex_tensor(exponents)));
  const auto* powers = reinterpret_cast<const value*>(got.data());
  EXPECT_EQ(powers[0], value(1, 0));
  for (std::size_t i = 1; i < bases.size(); ++i)
    EXPECT_LT(std::abs(powers[i] - std::exp(exponents[i] * std::log(bases[i]))), 1e-12) << i;
  const tensor of_zero = eval(pow(complex_tensor({{0, 0}}), complex_tensor({{2, 0}})));
  EXPECT_EQ(*reinterpret_cast<const value*>(of_zero.data()), value(0, 0));
}

TEST(ExprFunctions, OfTruthAndNumbersBeyondSignedIntegers) {
  const tensor truth = tensor::of({true, false});
  constexpr std::uint64_t large = std::uint64_t{1} << 63;
  EXPECT_EQ(elements_of<std::uint64_t>(eval(expr(truth) + large)),
            (std::vector<std::uint64_t>{large + 1, large}));
  EXPECT_EQ(elements_of<std::uint64_t>(eval(maximum(truth, large))),
            (std::vector<std::uint64_t>{large, large}));
  EXPECT_EQ(elements_of<bool>(eval(expr(truth) < large)), std::vector<bool>(2, true));
}

TEST(ExprFunctions, OfCastNumbersHaveThatDtype) {
  const tensor few = tensor::of({std::int8_t{100}});
  for (const dtype to : {dtype::int16, dtype::int32, dtype::int64}) {
    const tensor doubled = eval(expr(few) * astype(2, to));
    EXPECT_EQ(doubled.dtype(), to);
    EXPECT_EQ(doubled.item(), scalar(200));
  }
  const tensor real = tensor::of({1.0f});
  EXPECT_EQ((expr(real) + astype(1.0, dtype::float64)).dtype(), dtype::float64);
  EXPECT_EQ((expr(real) + 1.0).dtype(), dtype::float32);
}

// Positions and axes, also counted from the end, and refusals are the same as for tensors.
TEST(ExprFunctions, ViewsTakeWhatThoseOfTensorsTake) {
  const tensor a = eval(arange(6).reshape({2, 3}));
  int made = 0;
  const auto agree = [&](const auto& view) {
    const auto of_tensor = [&] { return view(a); };
    const auto of_expr = [&] { return eval(view(expr(a))); };
    std::optional<tensor> wanted;
    try {
      wanted = of_tensor();
    } catch (const error& refused) {
      EXPECT_EQ(code_of(of_expr), refused.code());
      return;
    }
    ASSERT_TRUE(equal_bits(of_expr(), *wanted));
    ++made;
  };
  for (index_t axis = -3; axis <= 2; ++axis) {
    for (index_t index = -4; index <= 4; ++index) {
      SCOPED_TRACE(std::to_string(axis) + ", " + std::to_string(index));
      agree([=](const auto& x) { return x.select(axis, index); });
      agree([=](const auto& x) { return x.flip({axis, index}); });
      agree([=](const auto& x) { return x.swapaxes(axis, index); });
      for (index_t length = -1; length <= 4; ++length)
        agree([=](const auto& x) { return x.narrow(axis, index, length); });
    }
  }
  EXPECT_GT(made, 100);
}

TEST(ExprFunctions, RefuseViewsThatAreNone) {
  const expr a = full({2, 3}, 1.0);
  const auto refused = [](const std::function<expr()>& make, const std::string& reason) {
    EXPECT_EQ(code_of(make), errc::invalid_argument);
    EXPECT_NE(text_of(make).find(reason), std::string::npos) << text_of(make);
  };
  refused([&] { return a.narrow(1, 2, 2); }, "axis 1 has 3 positions, wanted 2 from 2");
  refused([&] { return a.narrow(0, 0, std::numeric_limits<index_t>::max()); }, "narrow");
  refused([&] { return a.select(0, 2); }, "axis 0 has 2 positions, got index 2");
  refused([&] { return a.select(0, -3); }, "got index -3");
  refused([&] { return a.permute_dims({0}); }, "one entry for each axis");
  refused([&] { return a.permute_dims({0, -2}); }, "named twice");
  refused([&] { return a.flip({0, -2}); }, "named twice");
  refused([&] { return a.narrow(0, -3, 1); }, "wanted 1 from -3");
  refused([&] { return a.narrow(-1, -1, 2); }, "wanted 2 from -1");
  refused([&] { return a.squeeze(1); }, "only an axis of length 1");
  refused([&] { return a.broadcast_to({3}); }, "fewer axes");
  refused([&] { return a.broadcast_to({4, 3}); }, "can be repeated");
  refused([&] { return a.broadcast_to({-1, 2, 3}); }, "can be repeated");
  refused([&] { return a.swapaxes(0, 2); }, "axis");
}

TEST(ExprFunctions, RefuseWhatCannotBeMade) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const auto refused = [](const std::function<expr()>& make, const std::string& reason) {
    EXPECT_EQ(code_of(make), errc::invalid_argument);
    EXPECT_NE(text_of(make).find(reason), std::string::npos) << text_of(make);
  };
  refused([] { return arange(0, std::complex<double>(3, 0)); }, "no order");
  refused([] { return arange(least, most); }, "too many elements");
  refused([] { return arange(0.0, 1e300, 1e-300); }, "too many elements");
  refused([] { return arange(0.0, none); }, "too many elements");
  refused([] { return tile(arange(3), {-1}); }, "repetitions out of range");
  refused([] { return repeat(arange(3), most, 0); }, "repetitions out of range");
  refused([] { return sum(arange(3), dims{0, -1}); }, "names an axis twice");
  refused([] { return min(expr(tensor::empty({2}, dtype::complex64))); }, "not defined for");
}

TEST(ExprFunctions, TileAndRepeatConstantsWithoutReadingThem) {
  EXPECT_EQ(elements_of<double>(eval(tile(full({2}, 1.5), {2, 1}))), std::vector<double>(4, 1.5));
  EXPECT_EQ(elements_of<double>(eval(repeat(full({2}, 1.5), 3, 0))), std::vector<double>(6, 1.5));
  EXPECT_EQ(eval(repeat(full({2}, 1.5), 0, 0)).shape(), (dims{0}));
}

TEST(ExprFunctions, OfMoreTensorsThanAPassReadsAreRefused) {
  const auto sum_of = [](int count) {
    expr sum = tensor_of({0});
    for (int i = 1; i < count; ++i) sum = sum + tensor_of({static_cast<double>(i)});
    return sum;
  };
  EXPECT_EQ(elements_of<double>(eval(sum_of(63))), std::vector<double>{63 * 62 / 2});
  EXPECT_EQ(code_of([&] { eval(sum_of(64)); }), errc::unsupported);
  EXPECT_NE(text_of([&] { eval(sum_of(64)); }).find("evaluate a part of it first"),
            std::string::npos);
}

}  // namespace
}  // namespace shale
