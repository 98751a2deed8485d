// Tests distances over random layouts, dtypes and orders against loops in long double.
#include "shale/distances.hpp"

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
#include "shale/ops.hpp"
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
using test::random_tensor;
using test::text_of;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double orders[] = {0, 1, 2, 3.5, infinity, -infinity};

template <class T>
long double size_of(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::complex<double>>)
    return std::abs(std::complex<long double>(a) - std::complex<long double>(b));
  else return std::abs(static_cast<long double>(a) - static_cast<long double>(b));
}

long double norm_of(const std::vector<long double>& sizes, double order) {
  if (order == infinity) return *std::max_element(sizes.begin(), sizes.end());
  if (order == -infinity) return *std::min_element(sizes.begin(), sizes.end());
  long double sum = 0;
  for (const long double size : sizes)
    sum += order == 0 ? (size == 0 ? 0 : 1) : std::pow(size, static_cast<long double>(order));
  return order == 0 ? sum : std::pow(sum, 1 / static_cast<long double>(order));
}

/// The elements of a real tensor, whose errors are at most a few epsilons of its dtype.
void expect_near(const tensor& got, const std::vector<long double>& wanted) {
  const bool is_double = got.dtype() == dtype::float64;
  ASSERT_TRUE(is_double || got.dtype() == dtype::float32);
  const long double epsilon =
      is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const auto elements = elements_of<double>(eval(astype(got, dtype::float64)));
  ASSERT_EQ(elements.size(), wanted.size());
  for (std::size_t k = 0; k < wanted.size(); ++k)
    ASSERT_NEAR(elements[k], static_cast<double>(wanted[k]),
                static_cast<double>(16 * epsilon * wanted[k]))
        << k;
}

template <class T>
class Distances : public testing::Test {};
using element_list =
    testing::Types<std::int8_t, std::uint16_t, float, double, std::complex<double>>;
TYPED_TEST_SUITE(Distances, element_list);

TYPED_TEST(Distances, OfAllPairsOfRows) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const double order = orders[choose(0, 5)];
    const dims batch = test::random_shape(choose, {.axes_max = 2, .longest = 3});
    dims left = batch, right = test::random_broadcastable(choose, batch);
    const index_t m = choose(0, 5), n = choose(0, 5), k = choose(std::isinf(order) ? 1 : 0, 6);
    for (const index_t extent : {m, k}) left.push_back(extent);
    for (const index_t extent : {n, k}) right.push_back(extent);
    const tensor a = random_tensor<T>(choose, left), b = random_tensor<T>(choose, right);
    const auto ea = elements_of<T>(a), eb = elements_of<T>(b);
    dims shape = batch;
    shape.push_back(m);
    shape.push_back(n);
    std::vector<long double> wanted;
    for (index_t number = 0; number < count_of(as_list(shape)); ++number) {
      const index_list at = coordinates_of(number, as_list(shape));
      index_list at_a(at.begin(), at.end() - 1), at_b;
      for (index_t axis = 0; axis < right.size() - 2; ++axis) {
        const auto place = static_cast<std::size_t>(axis + batch.size() - (right.size() - 2));
        at_b.push_back(right[axis] == 1 ? 0 : at[place]);
      }
      at_b.push_back(at.back());
      std::vector<long double> sizes;
      for (index_t inner = 0; inner < k; ++inner) {
        index_list in_a = at_a, in_b = at_b;
        in_a.push_back(inner);
        in_b.push_back(inner);
        sizes.push_back(
            size_of(ea[number_of(in_a, as_list(left))], eb[number_of(in_b, as_list(right))]));
      }
      wanted.push_back(norm_of(sizes, order));
    }
    const expr made = cdist(a, b, order);
    ASSERT_EQ(made.shape(), shape);
    expect_near(eval(made), wanted);
  }
}

TYPED_TEST(Distances, OfWholeArraysAndPartsThatAreTooLong) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const double order = orders[choose(1, 4)];
    dims shape = test::random_shape(choose, {.axes_max = 3, .longest = 4, .may_be_empty = false});
    shape.push_back(choose(1, 4));
    const tensor a = random_tensor<T>(choose, shape), b = random_tensor<T>(choose, shape);
    const auto ea = elements_of<T>(a), eb = elements_of<T>(b);
    std::vector<long double> sizes;
    for (std::size_t k = 0; k < ea.size(); ++k) sizes.push_back(size_of(ea[k], eb[k]));
    const tensor distance = eval(dist(a, b, order));
    ASSERT_EQ(distance.shape(), dims{});
    expect_near(distance, {norm_of(sizes, order)});

    const index_t axis = choose(0, shape.size() - 1);
    const double limit = static_cast<double>(choose(0, 150));
    std::vector<std::vector<long double>> parts(static_cast<std::size_t>(shape[axis]));
    const auto part_of = [&](std::size_t number) {
      return static_cast<std::size_t>(coordinates_of(
          static_cast<index_t>(number), as_list(shape))[static_cast<std::size_t>(axis)]);
    };
    for (std::size_t k = 0; k < ea.size(); ++k) parts[part_of(k)].push_back(size_of(ea[k], T(0)));
    std::vector<long double> wanted;
    for (std::size_t k = 0; k < ea.size(); ++k) {
      const long double norm = norm_of(parts[part_of(k)], order);
      wanted.push_back(size_of(ea[k], T(0)) * (norm > limit ? limit / norm : 1));
    }
    const expr made = renorm(a, axis - shape.size(), limit, order);
    ASSERT_EQ(made.shape(), shape);
    expect_near(eval(abs(made)), wanted);
  }
}

TEST(DistanceRules, ClosePointsFarFromTheOriginKeepTheirDigits) {
  // |a|^2 + |b|^2 - 2ab would have no correct digit here.
  const double far = 0x1p30, step = 0x1p-20;
  const tensor a = tensor::of({far, far + 3 * step}).reshape({1, 2});
  const tensor b = tensor::of({far + 4 * step, far + 3 * step, far + 3 * step, far - step});
  EXPECT_EQ(elements_of<double>(eval(cdist(a, b.reshape({2, 2})))),
            (std::vector<double>{4 * step, 5 * step}));
  EXPECT_EQ(eval(cdist(full({1, 1}, 4096.5f, dtype::float32), full({1, 1}, 4096.f, dtype::float32)))
                .at({0, 0})
                .as<float>(),
            0.5f);
}

TEST(DistanceRules, UnsignedAndHalfNumbersDoNotOverflow) {
  const expr bytes = full({1, 2}, 3, dtype::uint8), more = full({1, 2}, 255, dtype::uint8);
  EXPECT_EQ(eval(cdist(bytes, more, 1)).at({0, 0}).as<double>(), 504);
  EXPECT_EQ(cdist(bytes, more).dtype(), dtype::float32);
  EXPECT_EQ(cdist(full({1, 2}, 1), more).dtype(), dtype::float64);
  // The squares are beyond the largest float16.
  const expr half = full({1, 2}, 3000, dtype::float16), zero = full({1, 2}, 0, dtype::float16);
  const expr one_axis = half * astype(expr(tensor::of({1.f, 0.f})), dtype::float16);
  EXPECT_EQ(eval(cdist(one_axis, zero)).at({0, 0}).as<float>(), 3000);
  EXPECT_EQ(cdist(half, zero).dtype(), dtype::float16);
  EXPECT_EQ(eval(dist(half.narrow(1, 0, 1), zero.narrow(1, 0, 1))).item().as<float>(), 3000);
  EXPECT_EQ(renorm(half, 0, 1).dtype(), dtype::float16);
  EXPECT_EQ(elements_of<bool>(eval(renorm(half, 0, 1) < 0.75f)), (std::vector<bool>{true, true}));
}

TEST(DistanceRules, NumbersAdaptToTensors) {
  const expr x = full({3}, 2, dtype::float32), counts = full({4}, 5, dtype::uint64);
  EXPECT_EQ(dist(x, 0.5).dtype(), dtype::float32);
  EXPECT_EQ(eval(dist(counts, 3)).item().as<double>(), 4);
}

TEST(DistanceRules, PartsThatAreShortEnoughKeepTheirBits) {
  using complex = std::complex<float>;
  const tensor a =
      tensor::of({complex(static_cast<float>(infinity), 0), complex(1, -2)}).reshape({1, 2});
  EXPECT_TRUE(array_equal(renorm(a, 0, infinity), a));
}

TEST(DistanceRules, NaNStaysNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const tensor a = tensor::of({nan, 0.0, 1.0, 1.0}).reshape({2, 2});
  const tensor d = eval(cdist(a, zeros({1, 2}), infinity));
  EXPECT_TRUE(std::isnan(d.at({0, 0}).as<double>()));
  EXPECT_EQ(d.at({1, 0}).as<double>(), 1);
  EXPECT_TRUE(std::isnan(eval(dist(a, a)).item().as<double>()));
  const tensor scaled = eval(renorm(a, 0, 0.5, 1));
  EXPECT_TRUE(std::isnan(scaled.at({0, 0}).as<double>()));
  EXPECT_EQ(scaled.at({1, 1}).as<double>(), 0.25);
}

TEST(DistanceErrors, NameShapes) {
  EXPECT_NE(text_of([] {
              cdist(zeros({2, 3}), zeros({2, 2}));
            }).find("(2, 3) and (2, 2)"),
            std::string::npos);
  EXPECT_EQ(code_of([] { cdist(zeros({3}), zeros({2, 3})); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] {
              cdist(zeros({1, 3}), zeros({2, 3}), std::nan(""));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([] { cdist(zeros({1, 0}), zeros({2, 0}), infinity); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] {
              cdist(zeros({1, 1}, dtype::float8_e5m2), zeros({1, 1}));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([] { dist(zeros({3}), zeros({2})); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { renorm(zeros({3}), 0, -1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { renorm(zeros({3}), 0, std::nan("")); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { renorm(expr(1), 0, 1); }), errc::invalid_argument);
}

}  // namespace
}  // namespace shale
