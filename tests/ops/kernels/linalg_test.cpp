// Tests dot and matmul. The oracle sums products index by index, in wider arithmetic.
#include "shale/linalg.hpp"

#include <gtest/gtest.h>

#include <random>

#include "ops/kernels/blocks.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"

namespace shale::test {
namespace {

/// The type in which products of T are summed.
template <class T>
struct wide_of {
  using type = std::conditional_t<std::is_integral_v<T>, std::uint64_t, long double>;
};
template <class Part>
struct wide_of<std::complex<Part>> {
  using type = std::complex<long double>;
};

template <class T>
typename wide_of<T>::type widened(T value) {
  if constexpr (is_complex<T>) return {value.real(), value.imag()};
  else return static_cast<typename wide_of<T>::type>(value);
}

template <class T>
tensor random_tensor(const dims& shape, generator& random) {
  tensor result = tensor::empty(shape, dtype_of<T>());
  for (T& value : result.template elements<T>()) {
    if constexpr (is_complex<T>) {
      std::uniform_real_distribution<double> part(-1, 1);
      const auto real = static_cast<typename T::value_type>(part(random));
      value = T(real, static_cast<typename T::value_type>(part(random)));
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(random());
    } else {
      value = T(static_cast<float>(std::uniform_real_distribution<double>(-1, 1)(random)));
    }
  }
  return result;
}

template <class T>
T element(const tensor& values, const dims& index) {
  const index_t position = values.layout().position(index);
  T value;
  std::memcpy(static_cast<void*>(&value),
              values.storage().data() + position * static_cast<index_t>(sizeof(T)), sizeof(T));
  return value;
}

/// Compares every element of `got`, of shape batch + (m, n), with the sum over k of a b. Both
/// operands have rank 2 or more; batch axes are broadcast.
template <class T>
void expect_product(const tensor& got, const tensor& a, const tensor& b) {
  const index_t m = a.shape(-2), k = a.shape(-1), n = b.shape(-1);
  const index_t rank = std::max(a.rank(), b.rank());
  dims index = dims::filled(rank, 0);
  ASSERT_EQ(got.rank(), rank);
  ASSERT_EQ(got.shape(-2), m);
  ASSERT_EQ(got.shape(-1), n);
  const auto element_of = [&](const tensor& operand, index_t row, index_t column) {
    dims operand_index = dims::filled(operand.rank(), 0);
    for (index_t axis = 0; axis < operand.rank() - 2; ++axis) {
      const index_t position = index[rank - operand.rank() + axis];
      operand_index[axis] = operand.shape()[axis] == 1 ? 0 : position;
    }
    operand_index[operand.rank() - 2] = row;
    operand_index[operand.rank() - 1] = column;
    return widened(element<T>(operand, operand_index));
  };
  for (index_t count = 0; count < got.size(); ++count) {
    index_t rest = count;
    for (index_t axis = rank - 1; axis >= 0; --axis) {
      index[axis] = rest % got.shape()[axis];
      rest /= got.shape()[axis];
    }
    typename wide_of<T>::type sum = 0;
    long double sizes = 0;
    for (index_t inner = 0; inner < k; ++inner) {
      const auto product =
          element_of(a, index[rank - 2], inner) * element_of(b, inner, index[rank - 1]);
      if constexpr (std::is_same_v<T, bool>) sum |= product;
      else sum += product;
      if constexpr (!std::is_integral_v<T>) sizes += std::abs(product);
    }
    const T value = element<T>(got, index);
    if constexpr (std::is_integral_v<T>) {
      ASSERT_EQ(value, static_cast<T>(sum)) << to_string(index);
    } else {
      const double last = std::is_same_v<T, float16>    ? 0x1p-10
                          : std::is_same_v<T, bfloat16> ? 0x1p-7
                          : std::is_same_v<T, float> || std::is_same_v<T, std::complex<float>>
                              ? 0x1p-23
                              : 0x1p-52;
      const double inner_last = last > 0x1p-23 ? 0x1p-23 : last;
      ASSERT_LE(std::abs(widened(value) - sum),
                last * std::abs(sum) + sizes * inner_last * static_cast<double>(k + 2))
          << to_string(index) << ": got " << show(value);
    }
  }
}

template <class T>
class Matmul : public testing::Test {};
using matmul_types =
    testing::Types<bool, std::int8_t, std::int32_t, std::int64_t, std::uint16_t, float16, bfloat16,
                   float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Matmul, matmul_types);

TYPED_TEST(Matmul, SumsProductsOverTheInnerAxis) {
  using T = TypeParam;
  generator random(1);
  const extents sizes[] = {{1, 1}, {5, 7}, {64, 3}};
  for (const extents& size : sizes) {
    for (const index_t k : {1, 2, 33}) {
      const tensor a = random_tensor<T>({size.outer, k}, random);
      const tensor b = random_tensor<T>({k, size.inner}, random);
      expect_product<T>(matmul(a, b), a, b);
    }
  }
  // The result has more than one tile.
  const tensor a = random_tensor<T>({515, 6}, random), b = random_tensor<T>({6, 520}, random);
  expect_product<T>(matmul(a, b), a, b);
}

TYPED_TEST(Matmul, ReadsOperandsOfAnyLayout) {
  using T = TypeParam;
  generator random(2);
  const auto layouts = [&](index_t rows, index_t columns) {
    std::vector<tensor> result;
    result.push_back(random_tensor<T>({rows, columns}, random));
    result.push_back(random_tensor<T>({columns, rows}, random).swapaxes(0, 1));
    result.push_back(
        random_tensor<T>({rows + 3, columns + 4}, random).narrow(0, 1, rows).narrow(1, 2, columns));
    result.push_back(random_tensor<T>({columns + 3, rows + 4}, random)
                         .swapaxes(0, 1)
                         .narrow(0, 2, rows)
                         .narrow(1, 2, columns));
    result.push_back(random_tensor<T>({rows, 3 * columns}, random).sliced(1, slice{.step = 3}));
    result.push_back(random_tensor<T>({rows, columns}, random).flip({0}));
    result.push_back(random_tensor<T>({rows, columns}, random).flip({1}));
    result.push_back(random_tensor<T>({1, columns}, random).broadcast_to({rows, columns}));
    result.push_back(random_tensor<T>({rows, 1}, random).broadcast_to({rows, columns}));
    return result;
  };
  for (const auto& [m, k, n] : {std::array<index_t, 3>{4, 5, 6}, {1, 5, 3}, {4, 1, 3}, {4, 5, 1}})
    for (const tensor& a : layouts(m, k))
      for (const tensor& b : layouts(k, n)) expect_product<T>(matmul(a, b), a, b);
}

TYPED_TEST(Matmul, BroadcastsBatches) {
  using T = TypeParam;
  generator random(3);
  const tensor a = random_tensor<T>({2, 1, 3, 4}, random);
  const tensor b = random_tensor<T>({5, 4, 2}, random);
  const tensor product = matmul(a, b);
  EXPECT_EQ(product.shape(), (dims{2, 5, 3, 2}));
  expect_product<T>(product, a, b);
  const tensor moved = random_tensor<T>({3, 4, 7}, random).permute_dims({2, 0, 1});
  expect_product<T>(matmul(moved, b.select(0, 1)), moved, b.select(0, 1));
}

TYPED_TEST(Matmul, TakesVectorsAsRowsAndColumns) {
  using T = TypeParam;
  generator random(4);
  const tensor a = random_tensor<T>({2, 3, 4}, random);
  const tensor row = random_tensor<T>({3}, random), column = random_tensor<T>({4}, random);
  const tensor left = matmul(row, a), right = matmul(a, column);
  EXPECT_EQ(left.shape(), (dims{2, 4}));
  EXPECT_EQ(right.shape(), (dims{2, 3}));
  expect_product<T>(left.expand_dims(1), row.expand_dims(0), a);
  expect_product<T>(right.expand_dims(2), a, column.expand_dims(1));
  const tensor both = matmul(row, row.flip({0}));
  EXPECT_EQ(both.rank(), 0);
  expect_product<T>(both.expand_dims(0).expand_dims(0), row.expand_dims(0),
                    row.flip({0}).expand_dims(1));
}

TYPED_TEST(Matmul, DotSumsProducts) {
  using T = TypeParam;
  generator random(5);
  for (const index_t size : {index_t{1}, index_t{1000}, index_t{150001}}) {
    const tensor a = random_tensor<T>({size}, random);
    const tensor b = random_tensor<T>({2 * size}, random).sliced(0, slice{.step = -2});
    const tensor got = dot(a, b);
    ASSERT_EQ(got.rank(), 0);
    ASSERT_EQ(got.dtype(), dtype_of<T>());
    expect_product<T>(got.expand_dims(0).expand_dims(0), a.expand_dims(0), b.expand_dims(1));
  }
}

TEST(MatmulRules, EmptyInnerAxesGiveZeros) {
  const tensor product =
      matmul(tensor::zeros({3, 0}, dtype::float64), tensor::zeros({0, 2}, dtype::float64));
  EXPECT_EQ(product.shape(), (dims{3, 2}));
  for (const double value : product.elements<const double>()) EXPECT_EQ(value, 0);
  EXPECT_EQ(
      matmul(tensor::zeros({0, 4}, dtype::int32), tensor::zeros({4, 2}, dtype::int32)).shape(),
      (dims{0, 2}));
  EXPECT_EQ(dot(tensor::zeros({0}, dtype::float32), tensor::zeros({0}, dtype::float32))
                .item()
                .as<double>(),
            0);
}

TEST(MatmulRules, PromotesMixedDtypes) {
  const tensor a = tensor::of<std::int32_t>({1, 2, 3});
  const tensor b = tensor::of<float>({0.5f, 0.25f, 2.0f});
  EXPECT_EQ(dot(a, b).dtype(), dtype::float32);
  EXPECT_EQ(dot(a, b).item().as<double>(), 7);
  EXPECT_EQ(matmul(a, b).dtype(), dtype::float32);
  EXPECT_EQ(matmul(a, b).item().as<double>(), 7);
}

TEST(MatmulRules, RefusesWhatDoesNotFit) {
  const auto code = [](const tensor& a, const tensor& b) {
    try {
      matmul(a, b);
    } catch (const error& failure) {
      return failure.code();
    }
    return errc::io;
  };
  const tensor matrix = tensor::zeros({2, 3}, dtype::float32);
  EXPECT_EQ(code(matrix, matrix), errc::invalid_argument);
  EXPECT_EQ(code(matrix, tensor::zeros({}, dtype::float32)), errc::invalid_argument);
  EXPECT_EQ(
      code(tensor::zeros({2, 2, 3}, dtype::float32), tensor::zeros({3, 3, 2}, dtype::float32)),
      errc::invalid_argument);
  EXPECT_EQ(code(tensor::zeros({2, 3}, dtype::int64), tensor::zeros({3, 2}, dtype::uint64)),
            errc::invalid_argument);
  EXPECT_EQ(
      code(tensor::zeros({2, 3}, dtype::float8_e5m2), tensor::zeros({3, 2}, dtype::float8_e5m2)),
      errc::invalid_argument);
  EXPECT_THROW(dot(matrix, matrix), error);
}

TEST(MatmulRules, HasTheSameBitsForAnyNumberOfThreads) {
  generator random(6);
  const tensor a = random_tensor<float>({600, 70}, random),
               b = random_tensor<float>({70, 1100}, random);
  const tensor long_a = random_tensor<double>({300000}, random);
  executor one({.threads = 1}), four({.threads = 4});
  const auto results = [&](const executor& on) {
    const executor::scope within(on);
    return std::pair(matmul(a, b), dot(long_a, long_a));
  };
  EXPECT_TRUE(equal_bits(results(one).first, results(four).first));
  EXPECT_TRUE(equal_bits(results(one).second, results(four).second));
}

TEST(MatmulRules, NamesItsBlas) {
  EXPECT_EQ(blas_name().rfind("OpenBLAS ", 0), 0u) << blas_name();
  EXPECT_NE(blas_name().find(", "), std::string::npos) << blas_name();
}

}  // namespace
}  // namespace shale::test
