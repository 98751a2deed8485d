// Tests correlation and convolution over random shapes, layouts, dtypes and modes. The oracle is a
// loop over the elements of the whole (`full`) result, of which the other modes are parts.
#include "shale/windows.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"
#include "support/tensor_tiles.hpp"

namespace shale {
namespace {

using test::as_list;
using test::coordinates_of;
using test::count_of;
using test::elements_of;
using test::index_list;
using test::number_of;
using test::random_choices;

constexpr window_mode all_modes[] = {window_mode::valid, window_mode::same, window_mode::full};

template <class T>
void add_product(T& sum, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) sum = sum || (a && b);
  else if constexpr (std::is_integral_v<T>)
    sum = static_cast<T>(static_cast<std::uint64_t>(sum) +
                         static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else sum += a * b;
}

/// The elements of a row-major array, and its shape.
template <class T>
struct values_of {
  explicit values_of(const tensor& from)
      : shape(as_list(from.shape())), values(elements_of<T>(from)) {}
  index_list shape;
  std::vector<T> values;
};

/// The correlation at position `at` of the result of mode `full`.
template <class T>
T correlated(const values_of<T>& a, const values_of<T>& kernel, const index_list& at) {
  T sum{};
  for (index_t number = 0; number < count_of(kernel.shape); ++number) {
    const index_list tap = coordinates_of(number, kernel.shape);
    index_list from(at.size());
    bool inside = true;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      from[axis] = at[axis] - (kernel.shape[axis] - 1) + tap[axis];
      inside = inside && from[axis] >= 0 && from[axis] < a.shape[axis];
    }
    if (inside)
      add_product<T>(sum, a.values[number_of(from, a.shape)],
                     kernel.values[static_cast<std::size_t>(number)]);
  }
  return sum;
}

/// The correlation of tensors whose kernel is not longer along any axis, or in mode `full`.
template <class T>
std::vector<T> correlation(const tensor& of, const tensor& by, window_mode mode) {
  const values_of<T> a(of), kernel(by);
  index_list first, shape;
  for (std::size_t axis = 0; axis < a.shape.size(); ++axis) {
    const index_t n = a.shape[axis], k = kernel.shape[axis];
    first.push_back(mode == window_mode::valid  ? k - 1
                    : mode == window_mode::same ? (k - 1) / 2
                                                : 0);
    shape.push_back(mode == window_mode::valid  ? n - k + 1
                    : mode == window_mode::same ? n
                                                : n + k - 1);
  }
  std::vector<T> result;
  for (index_t number = 0; number < count_of(shape); ++number) {
    index_list at = coordinates_of(number, shape);
    for (std::size_t axis = 0; axis < at.size(); ++axis) at[axis] += first[axis];
    result.push_back(correlated(a, kernel, at));
  }
  return result;
}

/// Shapes of equal ranks of 1 to 4; sometimes the last axis is long.
struct shapes {
  dims a;
  dims kernel;
};
shapes random_shapes(random_choices& choose, bool kernel_fits) {
  shapes result;
  const index_t rank = choose(1, 4);
  for (index_t axis = 0; axis < rank; ++axis) {
    const bool is_long = axis == rank - 1 && choose(0, 2) == 0;
    const index_t extent = is_long ? choose(60, 300) : choose(1, rank > 2 ? 5 : 9);
    result.a.push_back(extent);
    result.kernel.push_back(choose(1, kernel_fits ? std::min<index_t>(extent, 6) : 6));
  }
  return result;
}

template <class T>
class Windows : public testing::Test {};
using element_list = testing::Types<bool, std::int8_t, std::uint16_t, std::int64_t, float, double,
                                    std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Windows, element_list);

TYPED_TEST(Windows, AreSumsOfProductsForAllShapesLayoutsAndModes) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    random_choices choose(seed);
    const window_mode mode = all_modes[choose(0, 2)];
    const shapes some = random_shapes(choose, mode != window_mode::full && choose(0, 3) > 0);
    bool refused = false, exchanged = false;
    for (index_t axis = 0; axis < some.a.size(); ++axis) {
      const bool is_longer = some.kernel[axis] > some.a[axis];
      refused = refused || (is_longer && mode == window_mode::valid);
      exchanged = exchanged || (is_longer && mode != window_mode::full && some.a.size() == 1);
    }
    if (refused || exchanged) continue;
    SCOPED_TRACE(testing::Message()
                 << seed << " " << to_string(some.a) << " by " << to_string(some.kernel));
    const tensor a = test::random_tensor<T>(choose, some.a);
    const tensor kernel = test::random_tensor<T>(choose, some.kernel);
    const expr made = correlate(a, kernel, mode);
    const auto wanted = correlation<T>(a, kernel, mode);
    ASSERT_EQ(elements_of<T>(eval(made)), wanted);
    ASSERT_EQ(elements_of<T>(eval(convolve(a, expr(kernel).flip(), mode))), wanted);
    // Through views: pushed down, or of a part that is computed as a whole.
    const tensor whole = eval(made);
    const index_t axis = choose(0, made.rank() - 1);
    const index_t first = choose(0, made.shape(axis) - 1);
    const index_t count = choose(0, made.shape(axis) - first);
    ASSERT_EQ(elements_of<T>(eval(made.narrow(axis, first, count))),
              elements_of<T>(whole.narrow(axis, first, count)));
    ASSERT_EQ(elements_of<T>(eval(made.select(axis, first))),
              elements_of<T>(whole.select(axis, first)));
    ASSERT_EQ(elements_of<T>(eval(made.narrow(axis, first, count).flip().expand_dims(0))),
              elements_of<T>(whole.narrow(axis, first, count).flip()));
    ASSERT_EQ(elements_of<T>(eval(made.sliced(axis, {first, std::nullopt, 2}).swapaxes(0, -1))),
              elements_of<T>(whole.sliced(axis, {first, std::nullopt, 2}).swapaxes(0, -1)));
    // As a part of a larger expression, and of operands that are computed.
    const expr twice =
        correlate(expr(a) + expr(a), expr(kernel).flip() * expr(kernel).flip(), mode);
    const tensor sum = eval(expr(a) + expr(a)),
                 product = eval(expr(kernel).flip() * expr(kernel).flip());
    ASSERT_EQ(elements_of<T>(eval(twice + made)),
              elements_of<T>(eval(expr(eval(correlate(sum, product, mode))) + whole)));
  }
}

/// Numbers that need all bits of their dtype.
tensor fractions(const dims& shape, dtype type, std::uint64_t seed) {
  generator numbers(seed);
  return eval(normal(numbers, shape, 0, 1, type));
}

template <class T>
void expect_products_in_order(dtype type) {
  for (const auto& [shape, taps] :
       {shapes{{700}, {300}}, shapes{{40}, {64}}, shapes{{9, 333}, {5, 7}},
        shapes{{4, 6, 150}, {3, 2, 70}}, shapes{{3, 5}, {5, 3}}}) {
    const tensor a = fractions(shape, type, 1), kernel = fractions(taps, type, 2);
    dims reversed;
    for (const index_t extent : shape) reversed.insert(0, extent);
    tensor turned = tensor::empty(reversed, type);
    for (index_t axis = 0; axis < shape.size() / 2; ++axis)
      turned = turned.swapaxes(axis, shape.size() - 1 - axis);
    copy(turned, a);
    ASSERT_EQ(elements_of<T>(eval(correlate(a, kernel, window_mode::full))),
              correlation<T>(a, kernel, window_mode::full));
    ASSERT_EQ(elements_of<T>(eval(correlate(turned, kernel, window_mode::full))),
              correlation<T>(a, kernel, window_mode::full));
  }
}

TEST(WindowsOfFloats, TakeProductsInTheOrderOfTheKernel) {
  expect_products_in_order<float>(dtype::float32);
  expect_products_in_order<double>(dtype::float64);
}

// The blocks of threads begin anywhere. A result that is larger than a tile has several.
TEST(WindowsOfFloats, HaveTheSameBitsForAnyNumberOfThreadsAndAnyBudget) {
  const tensor a = fractions({700, 901}, dtype::float32, 3),
               kernel = fractions({7, 5}, dtype::float32, 4);
  std::vector<float> wanted;
  for (const int threads : {1, 2, 4})
    for (const std::size_t budget : {std::size_t{1} << 20, std::size_t{1} << 30}) {
      executor on({.threads = threads, .memory_bytes = budget});
      const executor::scope within(on);
      const auto got = elements_of<float>(eval(convolve(a, kernel, window_mode::same)));
      if (wanted.empty()) wanted = got;
      ASSERT_EQ(got, wanted);
    }
}

TEST(WindowsOfFloats, LeaveOutWhatLiesOutsideAlsoForInfiniteWeights) {
  constexpr double most = std::numeric_limits<double>::infinity();
  const tensor a = tensor::of<double>({1, 2, 3});
  const tensor kernel = tensor::of<double>({most, 1, -most});
  const auto got = elements_of<double>(eval(correlate(a, kernel, window_mode::full)));
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(got[0], -most);
  EXPECT_EQ(got[1], -most);
  EXPECT_TRUE(std::isnan(got[2]));
  EXPECT_EQ(got[3], most);
  EXPECT_EQ(got[4], most);
}

TEST(WindowsOfFloats, OfHalfAreSummedInFloat32AndRoundedOnce) {
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    const tensor a = fractions({9, 130}, type, 5), kernel = fractions({3, 4}, type, 6);
    const tensor wide = eval(astype(a, dtype::float32)),
                 weights = eval(astype(kernel, dtype::float32));
    for (const window_mode mode : all_modes) {
      const expr made = correlate(a, kernel, mode);
      EXPECT_EQ(made.dtype(), type);
      EXPECT_TRUE(array_equal(made, astype(correlate(wide, weights, mode), type)));
    }
  }
}

TEST(WindowsOfMixedDtypes, ComputeInThePromotedOne) {
  const tensor a = eval(astype(arange(200).reshape({2, 100}), dtype::int16));
  const tensor kernel = fractions({2, 3}, dtype::float32, 7);
  const expr made = correlate(a, kernel, window_mode::same);
  EXPECT_EQ(made.dtype(), dtype::float32);
  EXPECT_TRUE(
      array_equal(made, correlate(eval(astype(a, dtype::float32)), kernel, window_mode::same)));
  EXPECT_EQ(correlate(kernel, a.narrow(1, 0, 2)).dtype(), dtype::float32);
  EXPECT_TRUE(array_equal(correlate(kernel, a.narrow(1, 0, 2)),
                          correlate(kernel, eval(astype(a.narrow(1, 0, 2), dtype::float32)))));
}

TEST(WindowsOfComplexNumbers, ConjugateTheKernelOfCorrelateAlone) {
  using complex = std::complex<double>;
  const tensor a = tensor::of({complex(1, 2), complex(3, -1), complex(0, 5)});
  const tensor kernel = tensor::of({complex(2, 1), complex(-1, 3)});
  EXPECT_EQ(
      elements_of<complex>(eval(correlate(a, kernel))),
      (std::vector<complex>{complex(1, 2) * complex(2, -1) + complex(3, -1) * complex(-1, -3),
                            complex(3, -1) * complex(2, -1) + complex(0, 5) * complex(-1, -3)}));
  EXPECT_EQ(
      elements_of<complex>(eval(convolve(a, kernel, window_mode::valid))),
      (std::vector<complex>{complex(1, 2) * complex(-1, 3) + complex(3, -1) * complex(2, 1),
                            complex(3, -1) * complex(-1, 3) + complex(0, 5) * complex(2, 1)}));
}

// The numbers are those of NumPy 1.24.
TEST(WindowsOfOneAxis, ExchangeOperandsIfTheKernelIsLonger) {
  const tensor a = tensor::of<std::int64_t>({1, 10}),
               kernel = tensor::of<std::int64_t>({1, 2, 3, 4, 5});
  using numbers = std::vector<std::int64_t>;
  EXPECT_EQ(elements_of<std::int64_t>(eval(correlate(a, kernel, window_mode::valid))),
            (numbers{54, 43, 32, 21}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(correlate(a, kernel, window_mode::same))),
            (numbers{54, 43, 32, 21, 10}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(convolve(a, kernel, window_mode::valid))),
            (numbers{12, 23, 34, 45}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(convolve(a, kernel, window_mode::same))),
            (numbers{1, 12, 23, 34, 45}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(convolve(a, kernel))), (numbers{1, 12, 23, 34, 45, 50}));
}

TEST(WindowsOfFiles, ReadMappedTensorsAndTileSources) {
  test::scratch_directory directory;
  const dims shape{60, 70};
  const tensor a = fractions(shape, dtype::float32, 8),
               kernel = fractions({3, 5}, dtype::float32, 9);
  const auto wanted = elements_of<float>(eval(correlate(a, kernel, window_mode::same)));
  storage bytes = create_file(directory / "a", a.size_bytes());
  const tensor mapped(bytes, dtype::float32, layout(shape));
  copy(mapped, a);
  EXPECT_EQ(elements_of<float>(eval(correlate(mapped, kernel, window_mode::same))), wanted);
  const std::shared_ptr<const tile_source> tiles =
      std::make_shared<test::tensor_tiles>(a, dims{16, 33});
  EXPECT_EQ(elements_of<float>(eval(correlate(tiles, kernel, window_mode::same))), wanted);
}

TEST(WindowsOfOutputs, ReadWhatTheOutputHeldBefore) {
  const tensor a = fractions({50, 200}, dtype::float64, 10),
               kernel = fractions({3, 3}, dtype::float64, 11);
  const tensor wanted = eval(convolve(a, kernel, window_mode::same));
  const tensor over = a.clone();
  eval_into(over, convolve(over, kernel, window_mode::same));
  EXPECT_TRUE(array_equal(over, wanted));
  const tensor line = fractions({400}, dtype::float64, 12), own = line.narrow(0, 10, 5);
  const tensor filtered = eval(correlate(line, own, window_mode::same));
  eval_into(line, correlate(line, own, window_mode::same));
  EXPECT_TRUE(array_equal(line, filtered));
}

TEST(WindowsOfWrongOperands, AreRefused) {
  const auto refused = [](const expr& a, const expr& kernel,
                          window_mode mode = window_mode::valid) {
    EXPECT_EQ(test::code_of([&] { convolve(a, kernel, mode); }), errc::invalid_argument);
    return test::text_of([&] { correlate(a, kernel, mode); });
  };
  const expr image = zeros({4, 5}, dtype::float32), line = zeros({5}, dtype::float32);
  EXPECT_NE(refused(image, line).find("as many axes"), std::string::npos);
  EXPECT_NE(refused(1.5, 2.5).find("at least one axis"), std::string::npos);
  EXPECT_NE(refused(image, zeros({2, 6}, dtype::float32))
                .find("axis 1, the kernel has 6 elements, the operand 5"),
            std::string::npos);
  EXPECT_NE(refused(zeros({0}, dtype::float32), line).find("with elements"), std::string::npos);
  EXPECT_NE(refused(image, zeros({2, 0}, dtype::float32), window_mode::full).find("with elements"),
            std::string::npos);
  EXPECT_NE(refused(astype(line, dtype::float8_e5m2), astype(line, dtype::float8_e5m2))
                .find("float32 first"),
            std::string::npos);
  EXPECT_NE(refused(line, line, static_cast<window_mode>(3)).find("window_mode"),
            std::string::npos);
  const expr longest = full({std::numeric_limits<index_t>::max()}, 1, dtype::float32);
  EXPECT_NE(refused(longest, line, window_mode::full).find("too many positions"),
            std::string::npos);
  const expr large = full({index_t{1} << 31, index_t{1} << 31}, 1, dtype::float32);
  EXPECT_NE(refused(large, large, window_mode::full).find("too many elements"), std::string::npos);
}

}  // namespace
}  // namespace shale
