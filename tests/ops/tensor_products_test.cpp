// Tests products of arrays of any rank over random layouts and dtypes. The oracles multiply element
// by element, at coordinates.
#include "shale/tensor_products.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/linalg.hpp"
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

/// A shape with axes of length 1 in front, of that rank.
index_list of_rank(index_list shape, std::size_t rank) {
  while (shape.size() < rank) shape.insert(shape.begin(), 1);
  return shape;
}

template <class T>
T product_of(T a, T b) {
  return static_cast<T>(a * b);
}
template <class T>
T difference_of(T a, T b) {
  return static_cast<T>(a - b);
}

template <class T>
class TensorProducts : public testing::Test {};
using element_list =
    testing::Types<std::int8_t, std::uint32_t, float, double, std::complex<double>>;
TYPED_TEST_SUITE(TensorProducts, element_list);

TYPED_TEST(TensorProducts, KronHasEachElementTimesTheOther) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const tensor a = test::random_tensor<T>(choose, test::random_shape(choose, {.axes_max = 3}));
    const tensor b = test::random_tensor<T>(choose, test::random_shape(choose, {.axes_max = 3}));
    const auto rank = static_cast<std::size_t>(std::max(a.rank(), b.rank()));
    const index_list left = of_rank(as_list(a.shape()), rank);
    const index_list right = of_rank(as_list(b.shape()), rank);
    index_list shape;
    for (std::size_t k = 0; k < rank; ++k) shape.push_back(left[k] * right[k]);
    const auto ea = elements_of<T>(a), eb = elements_of<T>(b);
    std::vector<T> wanted(static_cast<std::size_t>(count_of(shape)));
    for (index_t i = 0; i < count_of(left); ++i) {
      for (index_t j = 0; j < count_of(right); ++j) {
        index_list at = coordinates_of(i, left);
        const index_list inner = coordinates_of(j, right);
        for (std::size_t k = 0; k < rank; ++k) at[k] = at[k] * right[k] + inner[k];
        wanted[number_of(at, shape)] =
            product_of(ea[static_cast<std::size_t>(i)], eb[static_cast<std::size_t>(j)]);
      }
    }
    const expr made = kron(a, b);
    ASSERT_EQ(as_list(made.shape()), shape);
    ASSERT_EQ(elements_of<T>(eval(made)), wanted);
    ASSERT_EQ(elements_of<T>(eval(kron(expr(a) + zeros_like(a), b))), wanted);
  }
}

TYPED_TEST(TensorProducts, CrossHasDifferencesOfTwoProducts) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape = test::random_shape(choose, {.axes_max = 3, .longest = 5});
    const index_t axis = choose(-1, 0) == 0 ? choose(0, shape.size()) : -1;
    const index_t along = axis < 0 ? shape.size() : axis;
    shape.insert(along, 3);
    dims few = shape;
    for (index_t k = 0; k < shape.size(); ++k)
      if (k != along && choose(0, 3) == 0) few[k] = 1;
    const tensor a = test::random_tensor<T>(choose, shape);
    const tensor b = test::random_tensor<T>(choose, few);
    const auto ea = elements_of<T>(a), eb = elements_of<T>(b);
    const auto component = [&](const std::vector<T>& elements, const dims& extents, index_list at,
                               index_t number) {
      for (index_t k = 0; k < extents.size(); ++k)
        if (extents[k] == 1) at[static_cast<std::size_t>(k)] = 0;
      at[static_cast<std::size_t>(along)] = number % 3;
      return elements[number_of(at, as_list(extents))];
    };
    std::vector<T> wanted;
    for (index_t number = 0; number < count_of(as_list(shape)); ++number) {
      const index_list at = coordinates_of(number, as_list(shape));
      const index_t k = at[static_cast<std::size_t>(along)];
      wanted.push_back(difference_of(
          product_of(component(ea, shape, at, k + 1), component(eb, few, at, k + 2)),
          product_of(component(ea, shape, at, k + 2), component(eb, few, at, k + 1))));
    }
    const expr made = cross(a, b, axis);
    ASSERT_EQ(made.shape(), shape);
    ASSERT_EQ(elements_of<T>(eval(made)), wanted);
    ASSERT_EQ(elements_of<T>(eval(cross(expr(a) + zeros_like(a), expr(b), axis))), wanted);
  }
}

/// Random numbers for the axes of a tensordot: which axes of both are summed.
struct summed_axes {
  dims a, b;
};

TYPED_TEST(TensorProducts, TensordotSumsOverPairsOfAxes) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims left = test::random_shape(choose, {.axes_max = 4, .longest = 4});
    dims right = test::random_shape(choose, {.axes_max = 4, .longest = 4});
    const index_t count = choose(0, std::min(left.size(), right.size()));
    summed_axes axes;
    while (axes.a.size() < count) {
      const index_t i = choose(0, left.size() - 1), j = choose(0, right.size() - 1);
      if (std::find(axes.a.begin(), axes.a.end(), i) != axes.a.end()) continue;
      if (std::find(axes.b.begin(), axes.b.end(), j) != axes.b.end()) continue;
      axes.a.push_back(i);
      axes.b.push_back(j);
      right[j] = left[i];
    }
    const tensor a = test::random_tensor<T>(choose, left),
                 b = test::random_tensor<T>(choose, right);
    const auto ea = elements_of<T>(a), eb = elements_of<T>(b);
    index_list shape;
    for (index_t k = 0; k < left.size(); ++k)
      if (std::find(axes.a.begin(), axes.a.end(), k) == axes.a.end()) shape.push_back(left[k]);
    for (index_t k = 0; k < right.size(); ++k)
      if (std::find(axes.b.begin(), axes.b.end(), k) == axes.b.end()) shape.push_back(right[k]);
    std::vector<T> wanted(static_cast<std::size_t>(count_of(shape)), T(0));
    for (index_t i = 0; i < count_of(as_list(left)); ++i) {
      for (index_t j = 0; j < count_of(as_list(right)); ++j) {
        const index_list at_a = coordinates_of(i, as_list(left));
        const index_list at_b = coordinates_of(j, as_list(right));
        index_list at;
        bool meets = true;
        for (index_t k = 0; k < left.size(); ++k) {
          const auto place = std::find(axes.a.begin(), axes.a.end(), k) - axes.a.begin();
          const index_t own = at_a[static_cast<std::size_t>(k)];
          if (place == count) at.push_back(own);
          else meets = meets && own == at_b[static_cast<std::size_t>(axes.b[place])];
        }
        if (!meets) continue;
        for (index_t k = 0; k < right.size(); ++k)
          if (std::find(axes.b.begin(), axes.b.end(), k) == axes.b.end())
            at.push_back(at_b[static_cast<std::size_t>(k)]);
        T& sum = wanted[number_of(at, shape)];
        sum = static_cast<T>(
            sum + product_of(ea[static_cast<std::size_t>(i)], eb[static_cast<std::size_t>(j)]));
      }
    }
    const expr made = tensordot(a, b, axes.a, axes.b);
    ASSERT_EQ(as_list(made.shape()), shape);
    ASSERT_EQ(made.dtype(), a.dtype());
    ASSERT_EQ(elements_of<T>(eval(made)), wanted);
  }
}

TYPED_TEST(TensorProducts, VecdotConjugatesTheLeftVector) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims batch = test::random_shape(choose, {.axes_max = 3, .longest = 4});
    const index_t axis = choose(0, batch.size()), length = choose(0, 9);
    dims shape = batch, few = batch;
    for (auto& extent : few)
      if (choose(0, 2) == 0) extent = 1;
    shape.insert(axis, length);
    few.insert(axis, length);
    const tensor a = test::random_tensor<T>(choose, few), b = test::random_tensor<T>(choose, shape);
    expr left = a;
    if constexpr (std::is_same_v<T, std::complex<double>>) left = left * std::complex<double>(2, 3);
    const auto ea = elements_of<T>(eval(left)), eb = elements_of<T>(b);
    std::vector<T> wanted;
    for (index_t number = 0; number < count_of(as_list(batch)); ++number) {
      T sum(0);
      for (index_t k = 0; k < length; ++k) {
        index_list at = coordinates_of(number, as_list(batch));
        at.insert(at.begin() + axis, k);
        index_list at_few = at;
        for (index_t j = 0; j < few.size(); ++j)
          if (few[j] == 1) at_few[static_cast<std::size_t>(j)] = 0;
        T factor = ea[number_of(at_few, as_list(few))];
        if constexpr (std::is_same_v<T, std::complex<double>>) factor = std::conj(factor);
        sum = static_cast<T>(sum + product_of(factor, eb[number_of(at, as_list(shape))]));
      }
      wanted.push_back(sum);
    }
    const expr made = vecdot(left, b, axis);
    ASSERT_EQ(made.shape(), batch);
    ASSERT_EQ(elements_of<T>(eval(made)), wanted);
  }
}

TEST(TensorProductSums, OfFloatsAreRoundedOnce) {
  // In float32, 2^24 + 1 is 2^24, and the products of the first elements cancel.
  const tensor a = tensor::of({4096.f, 1.f, -4096.f}), b = tensor::of({4096.f, 1.f, 4096.f});
  EXPECT_EQ(eval(vecdot(a, b)).item().as<float>(), 1);
  EXPECT_EQ(eval(tensordot(a, b, 1)).item().as<float>(), 1);
  EXPECT_EQ(dot(a, b).item().as<float>(), 1);
  EXPECT_EQ(eval(dot(expr(a), expr(b))).item().as<float>(), 1);
  EXPECT_EQ(code_of([&] { dot(expr(a), expr(b).narrow(0, 0, 2)); }), errc::invalid_argument);
  EXPECT_EQ(vecdot(tensor::zeros({3}, dtype::boolean), tensor::zeros({3}, dtype::boolean)).dtype(),
            dtype::boolean);
}

TEST(TensorProductSums, OfNumbersHaveTheDtypeOfTheTensor) {
  const tensor large = tensor::of<std::uint64_t>({1, std::uint64_t{1} << 62});
  const std::vector<std::uint64_t> twice{2, std::uint64_t{1} << 63};
  for (const expr& product : {tensordot(2, large, 0), tensordot(large, 2, 0)}) {
    EXPECT_EQ(product.dtype(), dtype::uint64);
    EXPECT_EQ(elements_of<std::uint64_t>(eval(product)), twice);
  }
  EXPECT_EQ(tensordot(0.5, tensor::of({1.f}), 0).dtype(), dtype::float32);
}

TEST(TensorProductErrors, NameShapes) {
  EXPECT_NE(text_of([] {
              cross(zeros({2, 3}), zeros({2, 2}));
            }).find("axis 1 of shape (2, 2)"),
            std::string::npos);
  EXPECT_EQ(code_of([] { cross(zeros({3, 2}), zeros({3, 4}), 0); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { cross(expr(1), expr(2)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { cross(zeros({3}, dtype::boolean), zeros({3}, dtype::boolean)); }),
            errc::invalid_argument);
  const expr broad = full({index_t{1} << 40}, 1);
  EXPECT_EQ(code_of([&] { kron(broad, broad); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { kron(zeros({2}, dtype::uint64), zeros({2}, dtype::int64)); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([] { vecdot(zeros({2, 3}), zeros({2, 1})); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { vecdot(expr(1), zeros({2})); }), errc::invalid_argument);
  EXPECT_NE(text_of([] {
              tensordot(zeros({2, 3}), zeros({2, 3}), {1}, {0});
            }).find("axes (1,) of shape (2, 3) and axes (0,) of shape (2, 3)"),
            std::string::npos);
  EXPECT_EQ(code_of([] {
              tensordot(zeros({2, 2}), zeros({2, 2}), {0, -2}, {0, 1});
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([] { tensordot(zeros({2}), zeros({2}), {0}, {}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { tensordot(zeros({2}), zeros({2, 2})); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { tensordot(zeros({2}), zeros({2}), -1); }), errc::invalid_argument);
  EXPECT_EQ(kron(zeros({2}, dtype::int16), zeros({3}, dtype::float32)).dtype(),
            promote(dtype::int16, dtype::float32));
}

}  // namespace
}  // namespace shale
