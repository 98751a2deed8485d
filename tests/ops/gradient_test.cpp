// Tests derivatives over random layouts, dtypes and axes. The oracle subtracts the neighbours of
// each element.
#include "shale/gradient.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"

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

template <class T>
class Gradient : public testing::Test {};
using element_list =
    testing::Types<std::int8_t, std::uint64_t, float, double, std::complex<double>>;
TYPED_TEST_SUITE(Gradient, element_list);

TYPED_TEST(Gradient, DividesDifferencesOfNeighbours) {
  using T = TypeParam;
  using Wide = std::conditional_t<std::is_integral_v<T>, double, T>;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape = test::random_shape(choose, {.axes_max = 3, .longest = 5});
    const index_t axis = choose(0, shape.size()), extent = choose(2, 6);
    shape.insert(axis, extent);
    const tensor values = test::random_tensor<T>(choose, shape);
    const auto elements = elements_of<T>(values);
    // Complex quotients by powers of two are exact.
    const bool is_real = !std::is_same_v<T, std::complex<double>>;
    const double spacing = is_real ? static_cast<double>(choose(1, 8)) / 4
                                   : std::ldexp(1.0, static_cast<int>(choose(-2, 2)));
    std::vector<Wide> wanted;
    for (index_t number = 0; number < count_of(as_list(shape)); ++number) {
      const index_list at = coordinates_of(number, as_list(shape));
      const auto along = static_cast<std::size_t>(axis);
      index_list before = at, after = at;
      before[along] = std::max<index_t>(at[along] - 1, 0);
      after[along] = std::min(at[along] + 1, extent - 1);
      const auto steps = static_cast<double>(after[along] - before[along]);
      const Wide difference = static_cast<Wide>(elements[number_of(after, as_list(shape))]) -
                              static_cast<Wide>(elements[number_of(before, as_list(shape))]);
      wanted.push_back(difference / static_cast<Wide>(steps * spacing));
    }
    const expr made = gradient(values, spacing, axis - shape.size());
    ASSERT_EQ(made.dtype(), dtype_of<Wide>());
    ASSERT_EQ(made.shape(), shape);
    ASSERT_EQ(elements_of<Wide>(eval(made)), wanted);
  }
}

TEST(GradientRules, NaNReachesItsNeighboursOnly) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto slopes =
      elements_of<double>(eval(gradient(tensor::of({0.0, 1.0, nan, 3.0, 5.0, 6.0}))));
  EXPECT_EQ(slopes[0], 1);
  EXPECT_TRUE(std::isnan(slopes[1]) && std::isnan(slopes[3]));
  EXPECT_EQ(slopes[2], 1);
  EXPECT_EQ(slopes[4], 1.5);
  EXPECT_EQ(slopes[5], 1);
}

TEST(GradientErrors, NameTheAxis) {
  EXPECT_NE(text_of([] {
              gradient(zeros({3, 1}));
            }).find("axis 1 of shape (3, 1)"),
            std::string::npos);
  EXPECT_EQ(code_of([] { gradient(expr(1)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { gradient(zeros({3}), 1, 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { gradient(zeros({3}, dtype::float8_e5m2)); }), errc::invalid_argument);
  EXPECT_EQ(eval(gradient(zeros({0, 2}))).size(), 0);
}

}  // namespace
}  // namespace shale
