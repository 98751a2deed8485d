#include "language/parsing/expression.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "language/functions/functions.hpp"
#include "language/tokens/tokens.hpp"
#include "shale/error.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace shale::tools {
namespace {

class Expression : public testing::Test {
 protected:
  Expression() {
    // a = [[0, 1, 2], [3, 4, 5]], b = [10, 20, 30], i = [7, -7, 2, 0]
    const std::vector<float> a{0, 1, 2, 3, 4, 5};
    arrays_.emplace("a", tensor::of<float>(a, {2, 3}));
    arrays_.emplace("b", tensor::of<double>({10, 20, 30}));
    arrays_.emplace("i", tensor::of<std::int32_t>({7, -7, 2, 0}));
    arrays_.emplace("flags", tensor::of<bool>({true, false, true}));
  }

  tensor compute(std::string_view text) const { return eval(parse_expression(text, arrays_)); }

  std::vector<double> numbers(std::string_view text) const {
    const tensor result = eval(astype(parse_expression(text, arrays_), dtype::float64));
    const std::span<const double> elements = result.elements<const double>();
    return {elements.begin(), elements.end()};
  }

  double number(std::string_view text) const {
    const std::vector<double> all = numbers(text);
    EXPECT_EQ(all.size(), 1u) << text;
    return all.empty() ? 0 : all.front();
  }

  dims shape(std::string_view text) const { return parse_expression(text, arrays_).shape(); }
  dtype type(std::string_view text) const { return parse_expression(text, arrays_).dtype(); }

  std::string failure(std::string_view text) const {
    try {
      parse_expression(text, arrays_);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
      return failure.what();
    }
    ADD_FAILURE() << text << " was accepted";
    return {};
  }

  // The column of the caret in the error, counted from 0.
  std::ptrdiff_t caret(std::string_view text) const {
    const std::string message = failure(text);
    const std::size_t at = message.find('^');
    if (at == std::string::npos) return -1;
    EXPECT_EQ(message.find('^', at + 1), std::string::npos) << message;
    return static_cast<std::ptrdiff_t>(at - message.rfind('\n', at) - 1) - 2;
  }

  bindings arrays_;
};

using list = std::vector<double>;

// A source whose elements must not be read.
class unreadable_source final : public tile_source {
 public:
  shale::dtype dtype() const noexcept override { return shale::dtype::float64; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  void load(const dims&, const tensor&) const override {
    throw error(errc::invalid_argument, "it was read");
  }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }

 private:
  dims shape_{100};
};

TEST_F(Expression, PrecedenceIsPythons) {
  EXPECT_EQ(number("2 + 3 * 4"), 14);
  EXPECT_EQ(number("(2 + 3) * 4"), 20);
  EXPECT_EQ(number("-2 ** 2"), -4);
  EXPECT_EQ(number("2 ** -1"), 0.5);
  EXPECT_EQ(number("2 ** 3 ** 2"), 512);
  EXPECT_EQ(number("10 - 4 - 3"), 3);
  EXPECT_EQ(number("7 // 2 * 2"), 6);
  EXPECT_EQ(number("-7 // 2"), -4);
  EXPECT_EQ(number("-7 % 3"), 2);
  EXPECT_EQ(number("3 % -9223372036854775808 + 9223372036854775807"), 2);
  EXPECT_EQ(number("-3 % 9223372036854775807 - 9223372036854775807"), -3);
  EXPECT_EQ(number("7.5 % -2"), -0.5);
  EXPECT_EQ(number("1 / 4"), 0.25);
  EXPECT_EQ(number("1 | 6 ^ 3 & 2"), 5);
  EXPECT_EQ(number("~5"), -6);
  EXPECT_EQ(number("--5"), 5);
  EXPECT_EQ(number("1 < 2"), 1);
  EXPECT_EQ(number("1 + 1 == 2"), 1);
}

TEST_F(Expression, OperatorsApplyElementwise) {
  EXPECT_EQ(numbers("a + b"), (list{10, 21, 32, 13, 24, 35}));
  EXPECT_EQ(numbers("b - a * 2"), (list{10, 18, 26, 4, 12, 20}));
  EXPECT_EQ(numbers("a / 2"), (list{0, 0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(numbers("i // 3"), (list{2, -3, 0, 0}));
  EXPECT_EQ(numbers("i % 3"), (list{1, 2, 2, 0}));
  EXPECT_EQ(numbers("a ** 2"), (list{0, 1, 4, 9, 16, 25}));
  EXPECT_EQ(numbers("-a[0]"), (list{-0.0, -1, -2}));
  EXPECT_EQ(numbers("(a > 1) & (a < 4)"), (list{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(numbers("flags | ~flags"), (list{1, 1, 1}));
  EXPECT_EQ(numbers("i & 3 ^ 1"), (list{2, 0, 3, 1}));
  EXPECT_EQ(numbers("a != 3"), (list{1, 1, 1, 0, 1, 1}));
}

TEST_F(Expression, NumbersAdaptToTheArraysTheyMeet) {
  EXPECT_EQ(type("a * 2.5"), dtype::float32);
  EXPECT_EQ(type("a * (2 * pi / 360)"), dtype::float32);
  EXPECT_EQ(type("a + sqrt(2)"), dtype::float32);
  EXPECT_EQ(type("i + 1"), dtype::int32);
  EXPECT_EQ(type("i / 2"), dtype::float64);
  EXPECT_EQ(type("b * 2"), dtype::float64);
  EXPECT_EQ(number("i[1] + 2 ** 3"), 1);
}

TEST_F(Expression, IndexesAsNumPyDoes) {
  EXPECT_EQ(number("1 << 3 + 1 & 24"), 16);
  EXPECT_EQ(number("-1 << 62 >> 61"), -2);
  EXPECT_EQ(numbers("i << 2 >> 1"), (list{14, -14, 4, 0}));
  EXPECT_EQ(numbers("a[1]"), (list{3, 4, 5}));
  EXPECT_EQ(numbers("a[-1, ::-1]"), (list{5, 4, 3}));
  EXPECT_EQ(numbers("a[:, 1]"), (list{1, 4}));
  EXPECT_EQ(numbers("a[..., 1:]"), (list{1, 2, 4, 5}));
  EXPECT_EQ(numbers("a[..., -1]"), (list{2, 5}));
  EXPECT_EQ(numbers("b[1:-1]"), (list{20}));
  EXPECT_EQ(numbers("b[None:2]"), (list{10, 20}));
  EXPECT_EQ(numbers("b[a.shape[0]]"), (list{30}));
  EXPECT_EQ(shape("a[:, None, :]"), (dims{2, 1, 3}));
  EXPECT_EQ(shape("a[None, ..., None]"), (dims{1, 2, 3, 1}));
  EXPECT_EQ(shape("a[np.newaxis]"), (dims{1, 2, 3}));
  EXPECT_EQ(shape("a[(0, 1)]"), dims());
  EXPECT_EQ(shape("a[5:]"), (dims{0, 3}));
  EXPECT_EQ(numbers("(b[:, None] - b)[0]"), (list{0, -10, -20}));
  EXPECT_EQ(numbers("b[1:] - b[:-1]"), (list{10, 10}));
}

TEST_F(Expression, FunctionsHaveNumPysNames) {
  EXPECT_EQ(numbers("sqrt(a[0] * 4)"), (list{0, 2, std::sqrt(8.0f)}));
  EXPECT_EQ(numbers("where(a > 2, a, -1)"), (list{-1, -1, -1, 3, 4, 5}));
  EXPECT_EQ(numbers("clip(a, 1, 4)"), (list{1, 1, 2, 3, 4, 4}));
  EXPECT_EQ(numbers("clip(a, None, a_max=2)"), (list{0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(numbers("minimum(b, 15)"), (list{10, 15, 15}));
  EXPECT_EQ(numbers("abs(i)"), (list{7, 7, 2, 0}));
  EXPECT_EQ(numbers("sign(i)"), (list{1, -1, 1, 0}));
  EXPECT_EQ(numbers("floor(b / 7)"), (list{1, 2, 4}));
  EXPECT_EQ(numbers("np.round(b / 4)"), (list{2, 5, 8}));
  EXPECT_EQ(numbers("arange(4)"), (list{0, 1, 2, 3}));
  EXPECT_EQ(numbers("arange(1, 7, 2)"), (list{1, 3, 5}));
  EXPECT_EQ(numbers("arange(3, 0, -1, dtype=float32)"), (list{3, 2, 1}));
  EXPECT_EQ(type("arange(3, dtype='f4')"), dtype::float32);
  EXPECT_EQ(numbers("tile(b, 2)"), (list{10, 20, 30, 10, 20, 30}));
  EXPECT_EQ(shape("tile(a, (2, 3))"), (dims{4, 9}));
  EXPECT_EQ(numbers("tile(a[:, :1], (2, 2))"), (list{0, 0, 3, 3, 0, 0, 3, 3}));
  EXPECT_EQ(numbers("repeat(b, 2, axis=0)"), (list{10, 10, 20, 20, 30, 30}));
  EXPECT_EQ(numbers("repeat(a, 2)"), (list{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  EXPECT_EQ(numbers("concatenate((b, b[::-1]))"), (list{10, 20, 30, 30, 20, 10}));
  EXPECT_EQ(shape("concatenate([a, a], axis=1)"), (dims{2, 6}));
  EXPECT_EQ(shape("stack((b, b, b), axis=-1)"), (dims{3, 3}));
  EXPECT_EQ(numbers("stack((b, b + 1), 1)"), (list{10, 11, 20, 21, 30, 31}));
  EXPECT_EQ(numbers("full((2,), 7.5)"), (list{7.5, 7.5}));
  EXPECT_EQ(type("zeros((2, 2), dtype=int16)"), dtype::int16);
  EXPECT_EQ(type("ones_like(i)"), dtype::int32);
  EXPECT_EQ(numbers("isnan(b / (b - 20) * 0)"), (list{0, 1, 0}));
  EXPECT_EQ(numbers("isinf(b / (b - 20))"), (list{0, 1, 0}));
  EXPECT_EQ(numbers("logical_and(i, i > 0)"), (list{1, 0, 1, 0}));
  EXPECT_NEAR(number("degrees(arctan2(b[0], b[0]))"), 45, 1e-12);
  EXPECT_EQ(numbers("hypot(b[:2] * 3, b[:2] * 4)"), (list{50, 100}));
  EXPECT_NEAR(number("hypot(3e200, 4e200) / 5e200"), 1, 1e-15);
  EXPECT_NEAR(number("radians(180)"), std::numbers::pi, 1e-15);
  EXPECT_NEAR(number("log10(1000) + log2(8) + log(e)"), 7, 1e-14);
  EXPECT_NEAR(number("exp(b[0] / 10)"), std::numbers::e, 1e-15);
}

TEST_F(Expression, ReductionsTakeAxesAndKeepdims) {
  EXPECT_EQ(number("sum(a)"), 15);
  EXPECT_EQ(numbers("sum(a, axis=0)"), (list{3, 5, 7}));
  EXPECT_EQ(numbers("a.sum(axis=-1)"), (list{3, 12}));
  EXPECT_EQ(shape("mean(a, axis=1, keepdims=True)"), (dims{2, 1}));
  EXPECT_EQ(shape("mean(a, axis=(0, 1), keepdims=True)"), (dims{1, 1}));
  EXPECT_EQ(numbers("a - mean(a, axis=1, keepdims=True)"), (list{-1, 0, 1, -1, 0, 1}));
  EXPECT_EQ(number("min(i) + max(i)"), 0);
  EXPECT_EQ(number("prod(b)"), 6000);
  EXPECT_NEAR(number("var(b)"), 200.0 / 3, 1e-12);
  EXPECT_NEAR(number("var(b, ddof=1)"), 100, 1e-12);
  EXPECT_NEAR(number("std(b, correction=1)"), 10, 1e-13);
  EXPECT_EQ(number("any(i > 5)"), 1);
  EXPECT_EQ(number("all(i > 5)"), 0);
  EXPECT_EQ(number("count_nonzero(i)"), 3);
  EXPECT_EQ(number("mean(5)"), 5);
}

TEST_F(Expression, ShapesCanBeChanged) {
  EXPECT_EQ(shape("reshape(a, (3, 2))"), (dims{3, 2}));
  EXPECT_EQ(shape("a.reshape(-1)"), (dims{6}));
  EXPECT_EQ(shape("a.reshape(1, 6)"), (dims{1, 6}));
  EXPECT_EQ(numbers("a.T"), (list{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(numbers("transpose(a, (1, 0))"), (list{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(numbers("a.transpose(1, 0)"), (list{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(shape("a[None].swapaxes(0, 2)"), (dims{3, 2, 1}));
  EXPECT_EQ(shape("moveaxis(zeros((2, 3, 4)), 0, -1)"), (dims{3, 4, 2}));
  EXPECT_EQ(numbers("flip(b)"), (list{30, 20, 10}));
  EXPECT_EQ(numbers("flip(a, axis=0)"), (list{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(shape("squeeze(a[None, :, None])"), (dims{2, 3}));
  EXPECT_EQ(shape("squeeze(a[None, :, None], axis=(0, 2))"), (dims{2, 3}));
  EXPECT_EQ(shape("expand_dims(a, -1)"), (dims{2, 3, 1}));
  EXPECT_EQ(shape("broadcast_to(b, (4, 3))"), (dims{4, 3}));
  EXPECT_EQ(numbers("a.ravel()[1:3]"), (list{1, 2}));
  EXPECT_EQ(number("a.size * a.ndim"), 12);
  EXPECT_EQ(type("astype(i, a.dtype)"), dtype::float32);
  EXPECT_EQ(type("i.astype(np.float64)"), dtype::float64);
  EXPECT_EQ(type("cast(a, int8)"), dtype::int8);
}

TEST_F(Expression, PartsCanBeNamed) {
  EXPECT_EQ(number("d = b[1:] - b[:-1]; mean(d * d)"), 100);
  EXPECT_EQ(number("n = 3; n = n * n; n + 1;"), 10);
  EXPECT_EQ(numbers("s = (1, 3); reshape(b, s)"), (list{10, 20, 30}));
  EXPECT_EQ(number("b = 2; b"), 2);
}

TEST_F(Expression, ConstantsGiveWayToArrays) {
  EXPECT_EQ(number("e"), std::numbers::e);
  arrays_.insert_or_assign("e", expr(tensor::of<double>({1, 2})));
  EXPECT_EQ(numbers("e"), (list{1, 2}));
  EXPECT_EQ(number("np.e"), std::numbers::e);
  EXPECT_TRUE(std::isinf(number("inf")));
  EXPECT_TRUE(std::isnan(number("np.nan")));
}

TEST_F(Expression, FoldsIntegersExactly) {
  EXPECT_EQ(compute("9007199254740993 - 1").item().as<std::int64_t>(), 9007199254740992);
  EXPECT_EQ(compute("2 ** 62").item().as<std::int64_t>(), std::int64_t{1} << 62);
  EXPECT_EQ(compute("9007199254740993 > 9007199254740992").item(), scalar(true));
  EXPECT_EQ(compute("1 ** (2 ** 62)").item(), scalar(1));
  EXPECT_EQ(compute("(-1) ** (2 ** 62 + 1)").item(), scalar(-1));
  for (const char* text : {"2 ** 64", "18446744073709551615 + 1", "-9223372036854775807 - 2",
                           "4611686018427387904 * 4", "-3 ** 41", "1 << 64", "-2 << 63"})
    EXPECT_NE(failure(text).find("does not fit in 64 bits"), std::string::npos) << text;
  for (const char* text : {"1 // 0", "1 % 0", "1.0 / 0", "1 / 0", "0 ** -1", "0.0 ** -1"})
    EXPECT_NE(failure(text).find("division by zero"), std::string::npos) << text;
  EXPECT_TRUE(std::isinf(number("0.0 ** -inf")));
}

// What Python prints. The largest integers are numbers like the others: NumPy's uint64 would wrap.
TEST_F(Expression, FoldsIntegersBeyondInt64Exactly) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  constexpr std::uint64_t two_to_63 = std::uint64_t{1} << 63;
  const auto expect = [&](std::string_view text, const scalar& wanted) {
    EXPECT_EQ(compute(text).item(), wanted) << text;
    EXPECT_EQ(type(text), wanted.dtype()) << text;
  };
  expect("9223372036854775808 - 9223372036854775809", std::int64_t{-1});
  expect("-(9223372036854775808)", least);
  expect("-1 << 63", least);
  expect("~9223372036854775807", least);
  expect("abs(-9223372036854775808)", two_to_63);
  expect("2 ** 63", two_to_63);
  expect("1 << 63", two_to_63);
  expect("9223372036854775807 + 1", two_to_63);
  expect("-9223372036854775808 // -1", two_to_63);
  expect("9223372036854775808 // 2", std::int64_t{1} << 62);
  expect("9223372036854775808 >> 62", std::int64_t{2});
  expect("18446744073709551615 % -10", std::int64_t{-5});
  expect("18446744073709551615 & -2", std::uint64_t{18446744073709551614U});
  expect("9223372036854775808 / 2", 4611686018427387904.0);
  expect("9007199254740993 / 3", 3002399751580331.0);
  expect("9223372036854775808 > -1", true);
  expect("sign(9223372036854775808)", std::int64_t{1});
  for (const char* text : {"-9223372036854775809", "~9223372036854775808", "-18446744073709551615",
                           "18446744073709551615 ^ -1"})
    EXPECT_NE(failure(text).find("does not fit in 64 bits"), std::string::npos) << text;
  EXPECT_NE(failure("b[9223372036854775808]").find("less than 2^63"), std::string::npos);
  EXPECT_NE(failure("zeros(9223372036854775808)").find("less than 2^63"), std::string::npos);
}

TEST_F(Expression, ComparesIntegersWithFloatsExactly) {
  const auto expect = [&](std::string_view text, bool wanted) {
    EXPECT_EQ(compute(text).item(), scalar(wanted)) << text;
  };
  expect("9007199254740993 == 9007199254740992.0", false);
  expect("9007199254740993 > 9007199254740992.0", true);
  expect("9007199254740992.0 < 9007199254740993", true);
  expect("9223372036854775807 < 9223372036854775808.0", true);
  expect("18446744073709551615 >= 18446744073709551616.0", false);
  expect("18446744073709551616.0 > 18446744073709551615", true);
  expect("-9223372036854775808 == -9223372036854775808.0", true);
  expect("3 < 3.5", true);
  expect("-3 > -3.5", true);
  expect("-3.5 >= -3", false);
  expect("0 == -0.0", true);
  expect("True == 1.0", true);
  expect("1 < 1e300", true);
  expect("-1 <= -1e300", false);
  expect("5 < inf", true);
  expect("5 > -inf", true);
  expect("5 != nan", true);
  expect("5 == nan", false);
  expect("nan < 5", false);
  expect("nan >= 5", false);
}

TEST_F(Expression, ReadsTheLargestIntegersExactly) {
  const auto outermost = [&](dtype integers, auto wanted, std::string_view text) {
    arrays_.insert_or_assign("x", tensor::of<decltype(wanted)>({0, wanted}));
    ASSERT_EQ(type("x"), integers);
    EXPECT_EQ(numbers(text), (std::vector<double>{0, 1})) << text;
  };
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  outermost(dtype::uint64, most, "x == 18446744073709551615");
  outermost(dtype::uint64, most, "x > 0xfffffffffffffffe");
  outermost(dtype::int64, least, "x == -9223372036854775808");
  outermost(dtype::int64, least, "x < -9223372036854775807");
  EXPECT_EQ(type("-9223372036854775808"), dtype::int64);
  EXPECT_EQ(type("18446744073709551615"), dtype::uint64);
  EXPECT_EQ(shape("b[::-9223372036854775808]"), (dims{1}));
  for (const char* beyond :
       {"18446744073709551616", "-9223372036854775809", "1 - -18446744073709551615"})
    EXPECT_NE(failure(beyond).find("does not fit in 64 bits"), std::string::npos) << beyond;
}

// Lists share what they contain: this one has 2^32 elements.
TEST_F(Expression, IndicesOfManyElementsAreRefused) {
  std::string text = "x = [0, 0];";
  for (int depth = 1; depth < 32; ++depth) text += "x = [x, x];";
  EXPECT_NE(failure(text + "a[x]").find("too long"), std::string::npos);
}

// A list of lists without elements has many lists too.
TEST_F(Expression, IndicesOfManyListsAreRefused) {
  std::string text = "x = [];";
  for (int depth = 1; depth < 32; ++depth) text += "x = [x, x];";
  EXPECT_NE(failure(text + "a[x]").find("too long"), std::string::npos);
  EXPECT_EQ(shape("b[[]]"), (dims{0}));
}

TEST_F(Expression, WordsAreChosenByTheirNames) {
  EXPECT_EQ(shape("convolve(b, [1, 1], mode='same')"), (dims{3}));
  EXPECT_EQ(shape("correlate(b, [1, 1])"), (dims{2}));
  EXPECT_EQ(shape("arange(2, stop=5)"), (dims{3}));
  EXPECT_EQ(shape("concat(arrays=(b, [1]))"), (dims{4}));
  EXPECT_EQ(numbers("add(b, [1, 2, 3])"), (list{11, 22, 33}));
  EXPECT_NE(failure("convolve(b, [1, 1], mode='all')")
                .find("'mode' must be one of 'valid', 'same', 'full', got 'all'"),
            std::string::npos);
  EXPECT_NE(failure("searchsorted(b, [1], side=1)").find("one of 'left', 'right', got an integer"),
            std::string::npos);
}

// Sorts are computed when they are called, so the names of all parameters are checked before.
TEST_F(Expression, ParametersAreCheckedBeforeAFunctionIsCalled) {
  arrays_.insert_or_assign("x", expr(std::make_shared<unreadable_source>()));
  for (const char* text : {"sort(x, order=1)", "median(x, keepdim=True)", "nonzero(x, axis=0)"})
    EXPECT_NE(failure(text).find("has no parameter"), std::string::npos) << text;
  EXPECT_NE(failure("sort(x)").find("it was read"), std::string::npos);
}

TEST_F(Expression, ErrorsPointAtThePlace) {
  EXPECT_EQ(caret("a + * b"), 4);
  EXPECT_EQ(caret("a + b)"), 5);
  EXPECT_EQ(caret("(a + b"), 6);
  EXPECT_EQ(caret(""), 0);
  EXPECT_EQ(caret("a +"), 3);
  EXPECT_EQ(caret("a + unknown"), 4);
  EXPECT_EQ(caret("a + nosuch(b)"), 4);
  EXPECT_EQ(caret("a[0] + i"), 5);        // shapes (3,) and (4,)
  EXPECT_EQ(caret("2 * a[0, 0, 0]"), 5);  // too many indices
  EXPECT_EQ(caret("a[::0]"), 4);
  EXPECT_EQ(caret("mean(a, axis=2)"), 0);
  EXPECT_EQ(caret("1 + mean(a, axes=0)"), 4);
  EXPECT_EQ(caret("sum(a, axis=0, axis=1)"), 15);
  EXPECT_EQ(caret("sum(axis=0, a)"), 12);
  EXPECT_EQ(caret("a < b < a"), 6);
  EXPECT_EQ(caret("a and b"), 2);
  EXPECT_EQ(caret("not a"), 0);
  EXPECT_EQ(caret("a if b else a"), 2);
  EXPECT_EQ(caret("a @ i"), 2);  // shapes (2, 3) and (4,)
  EXPECT_EQ(caret("2 @ 3"), 2);
  EXPECT_EQ(caret("a << 2"), 2);
  EXPECT_EQ(caret("3 << -1"), 2);
  EXPECT_EQ(caret("3 << 63"), 2);
  EXPECT_EQ(caret("2.0 >> 1"), 4);
  EXPECT_EQ(caret("a.reshape((4, 4))"), 2);
  EXPECT_EQ(caret("a.nope"), 2);
  EXPECT_EQ(caret("a.where(b)"), 2);
  EXPECT_EQ(caret("a[b]"), 1);
  EXPECT_EQ(caret("a[]"), 1);
  EXPECT_EQ(caret("sqrt"), 0);
  EXPECT_EQ(caret("sqrt()"), 0);
  EXPECT_EQ(caret("sqrt(a, b)"), 0);
  EXPECT_EQ(caret("a(1)"), 1);
  EXPECT_EQ(caret("a b"), 2);
  EXPECT_EQ(caret("(a, b)"), 0);
  EXPECT_EQ(caret("float32"), 0);
  EXPECT_EQ(caret("x = a"), 5);
  EXPECT_EQ(caret("True = 1; a"), 0);
  EXPECT_EQ(caret("a = b = a"), 6);
  EXPECT_EQ(caret("(1, 2)[2]"), 6);
  EXPECT_EQ(caret("5[0]"), 1);
  EXPECT_EQ(caret("min(a, b)"), 0);
}

TEST_F(Expression, ErrorsSayWhatToDo) {
  EXPECT_NE(failure("a and b").find("&"), std::string::npos);
  EXPECT_NE(failure("min(a, b)").find("minimum"), std::string::npos);
  EXPECT_NE(failure("z + 1").find("flags"), std::string::npos);
  EXPECT_NE(failure("where(a)").find("where(condition, x, y)"), std::string::npos);
  EXPECT_NE(parse_expression("1", {}).rank(), 1);
}

TEST_F(Expression, ComparisonsWithoutBracketsAreNamed) {
  const auto unbracketed = [&](std::string_view text) {
    return failure(text).find("binds tighter than comparisons") != std::string::npos;
  };
  EXPECT_EQ(caret("a > 0 & a < 1"), 6);  // floats: refused at the &
  EXPECT_EQ(caret("i > 0 & i < 1"), 6);  // integers: seen at the second comparison
  for (const char* text : {"a > 0 & a < 1", "i > 0 & i < 1", "(a > 0) & a < 1", "a == 0 | a == 1",
                           "i > 0 ^ i[0] < 1", "a > 0 & a"})
    EXPECT_TRUE(unbracketed(text)) << text;
  EXPECT_NE(failure("a > 0 | a < 1").find("(a > 0) | (a < 1)"), std::string::npos);
  // In these expressions, brackets would not help.
  for (const char* text : {"0 < i < (1 & 2)", "a & a", "a[0 & 1] < 1 < 2"})
    EXPECT_FALSE(unbracketed(text)) << text;
  EXPECT_EQ(numbers("i > 0 & 1"), (list{1, 0, 1, 0}));  // as in Python: i > (0 & 1)
}

TEST_F(Expression, MatricesMultiplyAsInNumPy) {
  EXPECT_EQ(numbers("a @ b"), (list{80, 260}));
  EXPECT_EQ(numbers("a @ a.T"), (list{5, 14, 14, 50}));
  EXPECT_EQ(number("b @ b"), 1400);
  EXPECT_EQ(numbers("matmul(a, a.T)"), (list{5, 14, 14, 50}));
  EXPECT_EQ(numbers("np.dot(a, b) + a.dot(b)"), (list{160, 520}));
  EXPECT_EQ(numbers("dot(b, 2)"), (list{20, 40, 60}));
  // @ has the precedence of * and is left-associative.
  EXPECT_EQ(numbers("2 * a @ b + 1"), (list{161, 521}));
  EXPECT_EQ(numbers("a @ b * 2"), (list{160, 520}));
  EXPECT_EQ(numbers("-a @ b"), (list{-80, -260}));
  // np.dot does not broadcast stacks: element [i, s, j] is a[i] · stack[s, :, j].
  EXPECT_EQ(shape("dot(a, zeros((5, 3, 4)))"), (dims{2, 5, 4}));
  EXPECT_EQ(shape("dot(zeros((7, 2, 3)), zeros((5, 6, 3, 4)))"), (dims{7, 2, 5, 6, 4}));
  EXPECT_EQ(numbers("dot(a, stack((a.T, a.T * 10)))"), (list{5, 14, 50, 140, 14, 50, 140, 500}));
  EXPECT_EQ(shape("b.dot(zeros((5, 3, 4)))"), (dims{5, 4}));
}

TEST_F(Expression, ListsOfNumbersAreArrays) {
  EXPECT_EQ(numbers("convolve([1, 2, 3], [1, -1])"), (list{1, 1, 1, -3}));
  EXPECT_EQ(numbers("searchsorted([10, 20, 30], b)"), (list{0, 1, 2}));
  EXPECT_EQ(number("sum([[1, 2], [3, 4.5]])"), 10.5);
  EXPECT_EQ(shape("abs([[1, 2, 3], [4, 5, 6]])"), (dims{2, 3}));
  EXPECT_EQ(type("abs([1, 2])"), dtype::int64);
  EXPECT_EQ(type("abs([1, True])"), dtype::int64);
  EXPECT_EQ(type("abs([1, 2.0])"), dtype::float64);
  EXPECT_EQ(type("any([True, False])"), dtype::boolean);
  EXPECT_EQ(shape("abs([])"), (dims{0}));
  EXPECT_NE(failure("sum([[1, 2], [3]])").find("differ in length or depth"), std::string::npos);
  EXPECT_NE(failure("sum([a, b])").find("contains an array"), std::string::npos);
  EXPECT_NE(failure("sum([1, None])").find("contains None"), std::string::npos);
  EXPECT_NE(failure("sum([9223372036854775808])").find("less than 2^63"), std::string::npos);
}

TEST_F(Expression, ArraysAndListsAreIndices) {
  EXPECT_EQ(numbers("a[:, [2, 0]]"), (list{2, 0, 5, 3}));
  EXPECT_EQ(numbers("s = [-1, 0]; a[s, 1:]"), (list{4, 5, 1, 2}));
  EXPECT_EQ(numbers("a[[0, 1], [2, 0]]"), (list{2, 3}));
  EXPECT_EQ(numbers("a[(0, 1), [2, 0]]"), (list{2, 3}));
  EXPECT_EQ(numbers("b[i // 7 + 1]"), (list{30, 10, 20, 20}));
  EXPECT_EQ(numbers("b[flags]"), (list{10, 30}));
  EXPECT_EQ(numbers("a[:, flags]"), (list{0, 2, 3, 5}));
  EXPECT_EQ(numbers("a[a > 2]"), (list{3, 4, 5}));
  EXPECT_EQ(numbers("b[[True, False, True]]"), (list{10, 30}));
  EXPECT_EQ(numbers("b[[True, 0]]"), (list{20, 10}));
  EXPECT_EQ(shape("b[[]]"), (dims{0}));
  EXPECT_EQ(shape("b[[[0, 1], [2, 0]]]"), (dims{2, 2}));
  EXPECT_EQ(shape("a[True]"), (dims{1, 2, 3}));
  EXPECT_EQ(shape("a[1, True, None]"), (dims{1, 1, 3}));
  EXPECT_EQ(shape("reshape(a, [3, 2])"), (dims{3, 2}));
  for (const char* text : {"a[[0, [1]]]", "a[[[0, 1], [1]]]", "a[[[0], 1]]"})
    EXPECT_NE(failure(text).find("differ in length or depth"), std::string::npos) << text;
  EXPECT_NE(failure("a[[0, 1.0]]").find("an index in a list must be an integer"),
            std::string::npos);
  EXPECT_NE(failure("a[flags]").find("a mask has other extents"), std::string::npos);
  EXPECT_EQ(caret("a[:, b]"), 1);
  EXPECT_NE(failure("a[[0, 1], 0] @ [1]").find("a list"), std::string::npos);
  EXPECT_EQ(numbers("sqrt([1, 4])"), (list{1, 2}));
}

TEST_F(Expression, NestingIsBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '(') + "1" +
           std::string(static_cast<std::size_t>(depth), ')');
  };
  EXPECT_EQ(number(nested(expression_depth_max - 1)), 1);
  failure(nested(expression_depth_max + 1));
  failure(nested(30'000));
  failure(std::string(30'000, '-') + "1");
  failure(std::string(30'000, '['));
  std::string powers = "1";
  for (int i = 0; i < 10'000; ++i) powers += "**1";
  failure(powers);
}

TEST_F(Expression, OperationsAreBounded) {
  std::string terms = "b";
  for (std::size_t i = 0; i < expression_operations_max; ++i) terms += "+b";
  EXPECT_EQ(parse_expression(terms, arrays_).shape(), (dims{3}));
  failure(terms + "+b");
  failure("b" + std::string(expression_bytes_max, ' '));
  std::string parts;
  for (std::size_t i = 1; i < expression_operations_max; ++i) parts += "b,";
  EXPECT_EQ(shape("concat((" + parts + "))").size(), 1);
  failure("concat((b," + parts + "))");
  failure("stack(arrays=(b," + parts + "))");
}

// Copied element by element, the tuple would have 4^90 of them.
TEST_F(Expression, TuplesThatHoldOneAnotherTakeNoMemoryOfTheirOwn) {
  const auto repeated = [](int times, std::string_view part) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
  };
  const std::string nested = "x = (b, 7); " + repeated(90, "x = (x, x, x, x); ");
  EXPECT_EQ(number(nested + "x" + repeated(90, "[-1]") + "[1]"), 7);
  const std::string too_deep = "x = 1; " + repeated(expression_depth_max, "x = x, x; ");
  EXPECT_NE(failure(too_deep + "(x, x)").find("nested more than 100 deep"), std::string::npos);
  EXPECT_GE(caret(too_deep + "(x, x)"), 0);
}

TEST_F(Expression, StringsAreNoLongerThanNames) {
  EXPECT_EQ(type("astype(a, 'float64')"), dtype::float64);
  failure("s = '" + std::string(101, 's') + "'; a");
}

TEST_F(Expression, NeverCrashesOnCutOrShuffledText) {
  const std::string text =
      "d = (a[1:, ::-1] - a[:-1, None, 0]) ** 2 // 3; where(d > 1.5e0, sum(d, axis=(0, 1), "
      "keepdims=True), np.pi) + a.T[..., -1].reshape((2, -1))";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    for (std::size_t skip = 0; cut + skip <= text.size(); skip += 7) {
      try {
        parse_expression(text.substr(0, cut) + text.substr(cut + skip), arrays_);
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::invalid_argument);
      }
    }
  }
}

TEST(Bindable, IsWhatPythonCallsAName) {
  for (const char* name : {"a", "_x1", "dem", "e"}) EXPECT_TRUE(is_bindable(name)) << name;
  for (const char* name : {"", "1a", "a-b", "and", "None", "a b", "ä"})
    EXPECT_FALSE(is_bindable(name)) << name;
}

TEST(Functions, AreNamedOnceAndDescribed) {
  for (const function& item : functions()) {
    EXPECT_EQ(find_function(item.name), &item) << item.name;
    EXPECT_TRUE(item.signature.starts_with(std::string(item.name) + "(")) << item.signature;
    for (const std::string_view synonym : synonyms_of(item.name))
      EXPECT_EQ(find_function(synonym), &item) << synonym;
  }
  EXPECT_EQ(find_function("eval"), nullptr);
}

}  // namespace
}  // namespace shale::tools
