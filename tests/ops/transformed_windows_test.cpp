// Tests correlation and convolution by Fourier transforms, over random shapes, layouts, dtypes and
// modes, and in every way of the engine. The oracle adds products one by one, in long double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <numbers>
#include <vector>

#include "ops/leaves/block_transform.hpp"
#include "shale/convert.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/windows.hpp"
#include "support/coordinates.hpp"
#include "support/element_types.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"
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

using wide = std::complex<long double>;

template <class T>
wide as_wide(const T& element) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<long double>(element);
  else if constexpr (std::is_same_v<T, std::complex<float>> ||
                     std::is_same_v<T, std::complex<double>>)
    return {element.real(), element.imag()};
  else return static_cast<long double>(static_cast<float>(element));
}

struct wide_values {
  index_list shape;
  std::vector<wide> elements;
  long double norm = 0;
};

template <class T>
wide_values wide_elements(const tensor& from) {
  wide_values result{as_list(from.shape()), {}};
  for (const T& element : elements_of<T>(from)) {
    result.elements.push_back(as_wide(element));
    result.norm += std::norm(result.elements.back());
  }
  result.norm = std::sqrt(result.norm);
  return result;
}

/// Small whole numbers in a random layout. Complex ones have imaginary parts, too.
template <class T>
tensor whole_numbers(random_choices& choose, const dims& shape) {
  const tensor values = test::random_tensor<T>(choose, shape);
  if constexpr (detail::is_complex<T>) {
    auto* const elements = reinterpret_cast<T*>(const_cast<std::byte*>(values.storage().data()));
    for (std::size_t i = 0; i < values.storage().size_bytes() / sizeof(T); ++i)
      elements[i] += T(0, static_cast<typename T::value_type>(choose(-50, 50)));
  }
  return values;
}

/// The sum at a position of the result of mode `full`.
wide sum_at(const wide_values& a, const wide_values& kernel, const index_list& at, bool convolves) {
  wide sum = 0;
  index_list from(at.size());
  for (index_t number = 0; number < count_of(kernel.shape); ++number) {
    index_t rest = number;
    bool inside = true;
    for (std::size_t axis = at.size(); axis-- > 0;) {
      const index_t extent = kernel.shape[axis], tap = rest % extent;
      rest /= extent;
      from[axis] = convolves ? at[axis] - tap : at[axis] - (extent - 1) + tap;
      inside = inside && from[axis] >= 0 && from[axis] < a.shape[axis];
    }
    if (!inside) continue;
    const wide weight = kernel.elements[static_cast<std::size_t>(number)];
    sum += a.elements[number_of(from, a.shape)] * (convolves ? weight : std::conj(weight));
  }
  return sum;
}

/// The bound of docs/numerics.md, for blocks of up to 2^22 elements.
long double error_bound(const wide_values& a, const wide_values& kernel) {
  return 40 * (1 + 22) * 0x1p-53L * a.norm * kernel.norm;
}

template <class T>
struct precision {
  static constexpr long double unit = std::numeric_limits<T>::epsilon();
};
template <>
struct precision<float16> {
  static constexpr long double unit = 0x1p-10L;
};
template <>
struct precision<bfloat16> {
  static constexpr long double unit = 0x1p-7L;
};
template <class Part>
struct precision<std::complex<Part>> : precision<Part> {};

template <class T>
class TransformedWindows : public testing::Test {};
using element_list = test::element_types<float16, bfloat16, float, double, std::complex<float>,
                                         std::complex<double>>;
TYPED_TEST_SUITE(TransformedWindows, element_list);

// blocks.2
TYPED_TEST(TransformedWindows, AreSumsOfProductsForAllShapesLayoutsAndModes) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    random_choices choose(seed);
    dims shape, taps;
    for (index_t axis = choose(1, 3); axis > 0; --axis) {
      shape.push_back(choose(1, shape.empty() ? 60 : 9));
      taps.push_back(choose(1, std::min<index_t>(shape[shape.size() - 1], 12)));
    }
    SCOPED_TRACE(testing::Message()
                 << seed << " " << to_string(shape) << " by " << to_string(taps));
    const tensor a = whole_numbers<T>(choose, shape);
    const tensor kernel = whole_numbers<T>(choose, taps);
    const wide_values wide_a = wide_elements<T>(a), wide_kernel = wide_elements<T>(kernel);
    for (const window_mode mode : {window_mode::valid, window_mode::same, window_mode::full}) {
      for (const bool convolves : {false, true}) {
        const tensor found = eval(convolves ? convolve(a, kernel, mode, window_method::fft)
                                            : correlate(a, kernel, mode, window_method::fft));
        ASSERT_EQ(found.dtype(), dtype_of<T>());
        const auto elements = elements_of<T>(found);
        const index_list found_shape = as_list(found.shape());
        for (index_t number = 0; number < found.size(); ++number) {
          index_list at = coordinates_of(number, found_shape);
          for (std::size_t axis = 0; axis < at.size(); ++axis)
            at[axis] += mode == window_mode::valid  ? wide_kernel.shape[axis] - 1
                        : mode == window_mode::same ? (wide_kernel.shape[axis] - 1) / 2
                                                    : 0;
          const wide wanted = sum_at(wide_a, wide_kernel, at, convolves);
          const wide got = as_wide(elements[static_cast<std::size_t>(number)]);
          if (std::abs(wanted) > 60'000 && std::is_same_v<T, float16>) continue;  // may overflow
          ASSERT_LE(std::abs(got - wanted),
                    error_bound(wide_a, wide_kernel) + precision<T>::unit * std::abs(wanted))
              << number << (convolves ? " convolve" : " correlate");
        }
      }
    }
  }
}

// blocks.2, blocks.3
TEST(TransformedWindowsOfMany, BlocksGoOnFromBlockToBlock) {
  const tensor a = eval(sin(astype(arange(600'000), dtype::float64)));
  const tensor kernel = eval(cos(astype(arange(5000), dtype::float64) * 0.37));
  const wide_values wide_a = wide_elements<double>(a), wide_kernel = wide_elements<double>(kernel);
  for (const int threads : {1, 4}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    const auto found =
        elements_of<double>(eval(convolve(a, kernel, window_mode::full, window_method::fft)));
    ASSERT_EQ(found.size(), 604'999u);
    const index_t block = (1 << 18) - 5000 + 1;  // sums of one block
    for (const index_t at : {index_t{0}, index_t{1}, index_t{4999}, block - 1, block, block + 1,
                             2 * block - 1, 2 * block, index_t{599'999}, index_t{604'998}})
      EXPECT_NEAR(found[static_cast<std::size_t>(at)],
                  static_cast<double>(sum_at(wide_a, wide_kernel, {at}, true).real()),
                  static_cast<double>(error_bound(wide_a, wide_kernel)))
          << at;
  }
}

TEST(TransformedWindowsOfMany, KernelsMayBeLongerThanTheOnlyAxis) {
  random_choices choose(1);
  const tensor a = test::random_tensor<double>(choose, {7});
  const tensor kernel = test::random_tensor<double>(choose, {40});
  for (const window_mode mode : {window_mode::valid, window_mode::same, window_mode::full}) {
    const auto found = elements_of<double>(eval(convolve(a, kernel, mode, window_method::fft)));
    const auto wanted = elements_of<double>(eval(convolve(a, kernel, mode)));
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], wanted[k], 1e-9) << k;
  }
}

// blocks.1
TEST(TransformedWindowsOfMany, HaveTheSameBitsForAnyThreadsBudgetAndLayout) {
  const tensor values = eval(sin(astype(arange(600 * 900), dtype::float32)).reshape({600, 900}));
  const tensor kernel = eval(cos(astype(arange(40 * 3), dtype::float32)).reshape({40, 3}));
  const test::scratch_directory directory;
  storage bytes = create_file(directory / "values", values.size_bytes());
  std::memcpy(bytes.data(), values.data(), values.size_bytes());
  const tensor mapped(bytes, values.dtype(), values.layout());
  const tensor turned = eval(expr(values).swapaxes(0, 1));
  const expr tiles(std::make_shared<const test::tensor_tiles>(values, dims{70, 210}));
  executor one({.threads = 1}), four({.threads = 4}), tiny({.threads = 3, .memory_bytes = 1 << 18});
  const auto sums = [&](const expr& of, executor& on) {
    return test::run_on(
        on, [&] { return eval(correlate(of, kernel, window_mode::same, window_method::fft)); });
  };
  const tensor wanted = sums(values, one);
  for (executor* on : {&four, &tiny}) {
    EXPECT_TRUE(equal_bits(sums(values, *on), wanted));
    EXPECT_TRUE(equal_bits(sums(expr(turned).swapaxes(0, 1), *on), wanted));
    EXPECT_TRUE(equal_bits(sums(mapped, *on), wanted));
    EXPECT_TRUE(equal_bits(sums(tiles, *on), wanted));
    const executor::scope within(*on);
    const tensor out = tensor::zeros(wanted.shape(), dtype::float32);
    test::tensor_tiles sink(out, {350, 400});
    eval_into(sink, correlate(tiles, kernel, window_mode::same, window_method::fft));
    EXPECT_TRUE(equal_bits(out, wanted));
  }
}

TEST(TransformedWindowsOfMany, IntegersAreComputedDirectly) {
  random_choices choose(2);
  const tensor a = test::random_tensor<std::int32_t>(choose, {50, 30});
  const tensor kernel = test::random_tensor<std::int32_t>(choose, {4, 5});
  EXPECT_TRUE(equal_bits(eval(convolve(a, kernel, window_mode::full, window_method::fft)),
                         eval(convolve(a, kernel))));
  const expr bits = expr(a) > 50;
  EXPECT_TRUE(equal_bits(eval(correlate(bits, bits, window_mode::same, window_method::fft)),
                         eval(correlate(bits, bits, window_mode::same))));
}

// Only the kernel is held, as complex128.
TEST(TransformedWindowsOfMany, WriteTheirOutputThemselves) {
  const tensor a = tensor::zeros({1000, 1000}, dtype::float32);
  const tensor kernel = tensor::zeros({30, 20}, dtype::float32);
  const expr sums = convolve(expr(a) + 1, kernel, window_mode::same, window_method::fft);
  EXPECT_EQ(explain(sums).staged_bytes_max, 30u * 20 * 16);
  EXPECT_EQ(explain(sums * 2).staged_bytes_max, 30u * 20 * 16 + 4'000'000u);
}

TEST(TransformedWindowsOfMany, MayReplaceTheirOperands) {
  random_choices choose(3);
  const tensor kernel =
      eval(astype(test::random_tensor<std::int32_t>(choose, {9, 9}), dtype::float64));
  const tensor values = eval(sin(astype(arange(700 * 600), dtype::float64)).reshape({700, 600}));
  const auto sums = [&](const expr& of, const expr& by) {
    return correlate(of, by, window_mode::same, window_method::fft);
  };
  const tensor wanted = eval(sums(values, kernel));
  eval_into(values, sums(values, kernel));
  EXPECT_TRUE(equal_bits(values, wanted));
  const tensor of_kernel = eval(sums(kernel, kernel));
  eval_into(kernel, sums(kernel, kernel));
  EXPECT_TRUE(equal_bits(kernel, of_kernel));
}

TEST(TransformedWindowsOfMany, AreViewsAndOperandsLikeOtherValues) {
  const tensor a = eval(sin(astype(arange(3000), dtype::float64)).reshape({50, 60}));
  const tensor kernel = eval(astype(arange(20), dtype::float64).reshape({4, 5}));
  const auto sums = [&](window_method method) {
    const expr made = convolve(expr(a) - mean(a), kernel * expr(0.5), window_mode::full, method);
    return eval(made.flip({0}).narrow(1, 3, 40) + sum(made, {0}).narrow(0, 1, 40));
  };
  const auto found = elements_of<double>(sums(window_method::fft));
  const auto wanted = elements_of<double>(sums(window_method::direct));
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], wanted[k], 1e-8) << k;
}

TEST(TransformedWindowsOfMany, RefuseWhatDirectOnesRefuse) {
  const tensor a = tensor::zeros({5, 5}, dtype::float32);
  const auto refuses = [&](const expr& of, const expr& by, window_mode mode, window_method method) {
    EXPECT_EQ(code_of([&] { correlate(of, by, mode, method); }), errc::invalid_argument);
  };
  refuses(a, tensor::zeros({6, 1}, dtype::float32), window_mode::valid, window_method::fft);
  refuses(a, tensor::zeros({5}, dtype::float32), window_mode::full, window_method::fft);
  refuses(a, tensor::zeros({0, 1}, dtype::float32), window_mode::full, window_method::fft);
  refuses(tensor::zeros({3}, dtype::float8_e5m2), tensor::zeros({3}, dtype::float8_e5m2),
          window_mode::full, window_method::fft);
  refuses(a, a, window_mode::full, static_cast<window_method>(2));
}

TEST(BlockTransform, IsTheFourierSumAlongEachAxis) {
  const dims shape{8, 3, 4};
  const ops::block_transform transform({8, 1, 4});
  EXPECT_EQ(transform.elements(), 32);
  std::vector<std::complex<double>> values;
  for (int k = 0; k < 96; ++k) values.emplace_back(std::sin(k * 1.3), std::cos(k * k));
  for (const bool backwards : {false, true}) {
    auto found = values;
    transform.run(
        found.data(), shape,
        backwards ? ops::transform_direction::backwards : ops::transform_direction::forwards);
    for (int u = 0; u < 8; ++u)
      for (int middle = 0; middle < 3; ++middle)
        for (int v = 0; v < 4; ++v) {
          std::complex<double> wanted = 0;
          for (int x = 0; x < 8; ++x)
            for (int y = 0; y < 4; ++y)
              wanted += values[static_cast<std::size_t>((x * 3 + middle) * 4 + y)] *
                        std::polar(1.0, (backwards ? 2 : -2) * std::numbers::pi *
                                            (u * x / 8.0 + v * y / 4.0));
          EXPECT_LE(std::abs(found[static_cast<std::size_t>((u * 3 + middle) * 4 + v)] - wanted),
                    1e-13);
        }
  }
}

}  // namespace
}  // namespace shale
