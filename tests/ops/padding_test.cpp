// Tests padding over random layouts, dtypes, widths and modes. The oracle walks from the operand to
// each new position, one reflection or repetition at a time.
#include "shale/padding.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "shale/error.hpp"
#include "shale/functions.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/tensor_tiles.hpp"

namespace shale {
namespace {

using test::as_list;
using test::code_of;
using test::coordinates_of;
using test::count_of;
using test::elements_of;
using test::index_list;
using test::number_of;
using test::random_choices;
using test::text_of;

constexpr pad_mode modes[] = {pad_mode::constant, pad_mode::edge, pad_mode::reflect,
                              pad_mode::symmetric, pad_mode::wrap};

/// Where the element at position `at` comes from, on an axis of `extent` elements that begins at 0;
/// -1 for the constant.
index_t source_of(index_t at, index_t extent, pad_mode mode) {
  while (at < 0 || at >= extent) {
    switch (mode) {
      case pad_mode::constant:
        return -1;
      case pad_mode::edge:
        at += at < 0 ? 1 : -1;
        break;
      case pad_mode::reflect:
        if (extent == 1) return 0;
        at = at < 0 ? -at : extent - 1 - (at - (extent - 1));
        break;
      case pad_mode::symmetric:
        at = at < 0 ? -at - 1 : extent - 1 - (at - extent);
        break;
      case pad_mode::wrap:
        at += at < 0 ? extent : -extent;
        break;
    }
  }
  return at;
}

template <class T>
std::vector<T> padded(const tensor& values, const std::vector<pad_width>& widths, pad_mode mode,
                      T value) {
  const index_list shape = as_list(values.shape());
  const auto elements = elements_of<T>(values);
  index_list wider = shape;
  for (std::size_t k = 0; k < shape.size(); ++k) wider[k] += widths[k].before + widths[k].after;
  std::vector<T> result;
  for (index_t number = 0; number < count_of(wider); ++number) {
    index_list at = coordinates_of(number, wider);
    bool is_inside = true;
    for (std::size_t k = 0; k < at.size(); ++k) {
      at[k] = source_of(at[k] - widths[k].before, shape[k], mode);
      is_inside = is_inside && at[k] >= 0;
    }
    result.push_back(is_inside ? elements[number_of(at, shape)] : value);
  }
  return result;
}

template <class T>
class Pad : public testing::Test {};
using element_list =
    testing::Types<std::int8_t, std::uint16_t, float, double, std::complex<double>>;
TYPED_TEST_SUITE(Pad, element_list);

TYPED_TEST(Pad, HasTheElementsThatItsModeSays) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const pad_mode mode = modes[choose(0, 4)];
    const dims shape = test::random_shape(
        choose, {.axes_max = 4, .longest = 5, .may_be_empty = mode == pad_mode::constant});
    const tensor values = test::random_tensor<T>(choose, shape);
    std::vector<pad_width> widths;
    for (index_t k = 0; k < shape.size(); ++k)
      widths.push_back(choose(0, 2) == 0 ? pad_width{} : pad_width{choose(0, 4), choose(0, 9)});
    const auto wanted = padded<T>(values, widths, mode, T(7));

    const expr made = pad(values, widths, {.mode = mode, .value = 7});
    ASSERT_EQ(made.dtype(), values.dtype());
    for (index_t k = 0; k < shape.size(); ++k) {
      const pad_width& width = widths[static_cast<std::size_t>(k)];
      ASSERT_EQ(made.shape(k), shape[k] + width.before + width.after);
    }
    ASSERT_EQ(elements_of<T>(eval(made)), wanted);
    // As an operand, through a view, and of an operand that is computed.
    ASSERT_EQ(elements_of<T>(eval((made + made).flip() - made.flip())),
              elements_of<T>(eval(expr(eval(made)).flip())));
    const expr computed = pad(expr(values) + zeros_like(values), widths, {mode, 7});
    ASSERT_EQ(elements_of<T>(eval(computed)), wanted);
  }
}

TEST(Padding, GoesOnBeyondTheLengthOfTheAxis) {
  const tensor x = tensor::of({1.f, 2.f, 3.f});
  const auto of = [&](pad_mode mode) {
    return elements_of<float>(eval(pad(x, {{4, 5}}, {.mode = mode, .value = 9})));
  };
  EXPECT_EQ(of(pad_mode::constant), (std::vector<float>{9, 9, 9, 9, 1, 2, 3, 9, 9, 9, 9, 9}));
  EXPECT_EQ(of(pad_mode::edge), (std::vector<float>{1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(of(pad_mode::reflect), (std::vector<float>{1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(of(pad_mode::symmetric), (std::vector<float>{3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2}));
  EXPECT_EQ(of(pad_mode::wrap), (std::vector<float>{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2}));
}

TEST(Padding, OneWidthCountsForAllAxes) {
  const expr x = arange(6).reshape({2, 3});
  EXPECT_EQ(pad(x, {{1, 2}}).shape(), (dims{5, 6}));
  EXPECT_EQ(pad(expr(2.5), {{1, 2}}).shape(), dims{});
  EXPECT_EQ(elements_of<std::int64_t>(eval(pad(x, {{0, 1}, {0, 0}}))),
            (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 0, 0, 0}));
}

TEST(Padding, KeepsBitsOfEveryDtype) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const tensor odd = tensor::of({nan, -0.0, -std::numeric_limits<double>::infinity()});
  const tensor framed = eval(pad(odd, {{2, 1}}, {.value = nan}));
  EXPECT_TRUE(equal_bits(framed.narrow(0, 2, 3), odd));
  EXPECT_TRUE(std::isnan(framed.at({1}).as<double>()));
  EXPECT_TRUE(std::isnan(framed.at({5}).as<double>()));
  for (const dtype type : {dtype::boolean, dtype::float8_e4m3fn, dtype::float8_e5m2, dtype::float16,
                           dtype::bfloat16, dtype::uint64, dtype::complex64}) {
    SCOPED_TRACE(name(type));
    const tensor few = eval(astype(tensor::of({0.f, 1.f, 1.f, 0.f}), type));
    const tensor wanted = eval(astype(tensor::of({1.f, 0.f, 1.f, 1.f, 0.f, 1.f}), type));
    EXPECT_TRUE(equal_bits(eval(pad(few, {{1, 1}}, {.mode = pad_mode::reflect})), wanted));
    EXPECT_TRUE(equal_bits(eval(pad(few, {{1, 1}}, {.value = true})), wanted));
  }
}

TEST(Padding, OfTilesEqualsThatOfTheirElements) {
  random_choices choose(1);
  const tensor values = test::random_tensor<float>(choose, dims{7, 5});
  const expr tiles(std::make_shared<test::tensor_tiles>(values, dims{3, 2}));
  for (const pad_mode mode : modes)
    EXPECT_TRUE(equal_bits(eval(pad(tiles, {{2, 3}, {0, 4}}, {.mode = mode})),
                           eval(pad(values, {{2, 3}, {0, 4}}, {.mode = mode}))));
}

TEST(Padding, OfNoElementsHasTheConstantOnly) {
  EXPECT_EQ(elements_of<double>(eval(pad(zeros({0}), {{1, 2}}, {.value = 4}))),
            (std::vector<double>{4, 4, 4}));
  EXPECT_EQ(pad(zeros({0, 2}), {{0, 0}, {1, 1}}, {.mode = pad_mode::wrap}).shape(), (dims{0, 4}));
  EXPECT_EQ(eval(pad(zeros({0, 2}), {{0, 0}, {1, 1}}, {.mode = pad_mode::wrap})).size(), 0);
  EXPECT_NE(text_of([] {
              pad(zeros({2, 0}), {{1, 1}}, {.mode = pad_mode::edge});
            }).find("axis 1 of shape (2, 0)"),
            std::string::npos);
}

TEST(Padding, RefusesWidthsThatDoNotFit) {
  const expr x = zeros({2, 3}, dtype::int8);
  EXPECT_NE(text_of([&] {
              pad(x, {{0, 0}, {0, -1}});
            }).find("0 before and -1 after axis 1"),
            std::string::npos);
  const index_t most = std::numeric_limits<index_t>::max();
  const std::vector<std::vector<pad_width>> wrong{
      {}, {{1, 1}, {1, 1}, {1, 1}}, {{-1, 0}}, {{most, 0}}, {{most, most}}, {{most / 8, most / 8}}};
  for (const auto& widths : wrong)
    EXPECT_EQ(code_of([&] { pad(x, widths); }), errc::invalid_argument) << widths.size();
  EXPECT_EQ(code_of([&] { pad(x, {{1, 1}}, {.value = 300}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { pad(x, {{1, 1}}, {.value = 0.5}); }), errc::invalid_argument);
  // Also where nothing is padded.
  EXPECT_EQ(code_of([&] { pad(x, {{0, 0}}, {.value = 0.5}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { pad(zeros({}), {{-1, -1}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              pad(x, {{1, 1}}, {.mode = static_cast<pad_mode>(9)});
            }),
            errc::invalid_argument);
}

}  // namespace
}  // namespace shale
