// Tests that the kernels of sums over windows give the same bits for every instruction set, and
// those of a loop over taps and sums.
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "ops/kernels/dispatch/dispatch.hpp"

namespace shale::test {
namespace {

template <class T>
std::vector<T> numbers(std::mt19937_64& choose, std::size_t count) {
  std::vector<T> result(count);
  for (T& value : result) {
    const auto any = [&] { return static_cast<double>(choose() >> 11) * 0x1p-52 - 1; };
    if constexpr (std::is_integral_v<T>) value = static_cast<T>(choose());
    else if constexpr (std::is_floating_point_v<T>) value = static_cast<T>(any());
    else
      value =
          T(static_cast<typename T::value_type>(any()), static_cast<typename T::value_type>(any()));
  }
  return result;
}

template <class T>
T sum_with(T sum, T weight, T input) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(sum) +
                          static_cast<std::uint64_t>(weight) * static_cast<std::uint64_t>(input));
  } else if constexpr (std::is_floating_point_v<T>) {
    const T product = weight * input;
    return sum + product;
  } else {
    using part = typename T::value_type;
    const part real = weight.real() * input.real() + -weight.imag() * input.imag();
    const part imaginary = weight.real() * input.imag() + weight.imag() * input.real();
    return T(sum.real() + real, sum.imag() + imaginary);
  }
}

template <class T>
void expect_sums_of_a_loop(dtype type) {
  std::mt19937_64 choose(static_cast<std::uint64_t>(type));
  for (int trial = 0; trial < 120; ++trial) {
    const std::size_t count = 1 + choose() % (trial % 2 == 0 ? 40 : 700);
    const std::size_t taps = 1 + choose() % 9, rows = 1 + choose() % 4;
    const auto input = numbers<T>(choose, rows * (count + taps - 1));
    const auto weights = numbers<T>(choose, rows * taps);
    const auto before = numbers<T>(choose, count);
    std::vector<ops::window_row> windows;
    auto wanted = before;
    for (std::size_t row = 0; row < rows; ++row) {
      const T* const from = input.data() + row * (count + taps - 1);
      const T* const by = weights.data() + row * taps;
      windows.push_back(
          {reinterpret_cast<const std::byte*>(from), reinterpret_cast<const std::byte*>(by)});
      for (std::size_t tap = 0; tap < taps; ++tap)
        for (std::size_t k = 0; k < count; ++k)
          wanted[k] = sum_with(wanted[k], by[tap], from[k + tap]);
    }
    for (const ops::isa set : {ops::isa::baseline, ops::isa::avx2, ops::isa::avx512}) {
      if (!ops::supports(set)) continue;
      auto got = before;
      ops::window_kernels_for(set).sums[static_cast<int>(type)](
          reinterpret_cast<std::byte*>(got.data()), windows.data(), static_cast<index_t>(rows),
          static_cast<index_t>(taps), static_cast<index_t>(count));
      ASSERT_EQ(std::memcmp(got.data(), wanted.data(), count * sizeof(T)), 0)
          << ops::name(set) << " " << name(type) << " count " << count << " taps " << taps;
    }
  }
}

TEST(WindowKernels, GiveTheSumsOfALoopForEveryInstructionSet) {
  expect_sums_of_a_loop<float>(dtype::float32);
  expect_sums_of_a_loop<double>(dtype::float64);
  expect_sums_of_a_loop<std::complex<float>>(dtype::complex64);
  expect_sums_of_a_loop<std::complex<double>>(dtype::complex128);
  expect_sums_of_a_loop<std::int8_t>(dtype::int8);
  expect_sums_of_a_loop<std::uint8_t>(dtype::uint8);
  expect_sums_of_a_loop<std::int16_t>(dtype::int16);
  expect_sums_of_a_loop<std::uint16_t>(dtype::uint16);
  expect_sums_of_a_loop<std::int32_t>(dtype::int32);
  expect_sums_of_a_loop<std::uint32_t>(dtype::uint32);
  expect_sums_of_a_loop<std::int64_t>(dtype::int64);
  expect_sums_of_a_loop<std::uint64_t>(dtype::uint64);
}

// A byte of a bool is true unless it is 0.
TEST(WindowKernels, OfBoolsAreOrsOfAnds) {
  const std::vector<std::uint8_t> input{0, 7, 0, 0, 255, 0, 0, 0, 0, 2}, weights{128, 0, 1};
  const std::vector<std::uint8_t> wanted{0, 1, 1, 0, 1, 0, 0, 1};
  for (const ops::isa set : {ops::isa::baseline, ops::isa::avx2, ops::isa::avx512}) {
    if (!ops::supports(set)) continue;
    std::vector<std::uint8_t> got(wanted.size(), 0);
    const ops::window_row row{reinterpret_cast<const std::byte*>(input.data()),
                              reinterpret_cast<const std::byte*>(weights.data())};
    ops::window_kernels_for(set).sums[static_cast<int>(dtype::boolean)](
        reinterpret_cast<std::byte*>(got.data()), &row, 1, 3, static_cast<index_t>(got.size()));
    EXPECT_EQ(got, wanted);
  }
}

}  // namespace
}  // namespace shale::test
