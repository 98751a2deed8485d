// Tests products of matrices whose strides BLAS cannot count. Elements lie in memory that takes space
// only where it is written, so that rows may lie gigabytes apart. Expected values are computed by hand.
#include "ops/linalg/gemm.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <complex>
#include <vector>

namespace shale::ops {
namespace {

constexpr index_t blas_max = (index_t{1} << 31) - 1;

// Multiplies into two rows whose distance is `apart` elements.
template <class T>
void expect_multiplied(index_t apart) {
  constexpr index_t rows = 2, columns = 3;
  const auto bytes = static_cast<std::size_t>(apart + columns) * sizeof(T);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::vector<T> a{1, 2, 3, 4}, b{1, 2, 3, 4, 5, 6};
  T* const elements = static_cast<T*>(memory);
  const auto bytes_of = [](T* first) { return reinterpret_cast<std::byte*>(first); };
  const matrix left{bytes_of(a.data()), rows, 2, 2, 1};
  const matrix right{bytes_of(b.data()), 2, columns, columns, 1};
  const matrix out{bytes_of(elements), rows, columns, apart, 1};
  const auto row = [&](index_t number) {
    return std::vector<T>(elements + number * apart, elements + number * apart + columns);
  };
  multiply(dtype_of<T>(), out, left, right, product::replaces);
  EXPECT_EQ(row(0), (std::vector<T>{9, 12, 15}));
  EXPECT_EQ(row(1), (std::vector<T>{19, 26, 33}));
  multiply(dtype_of<T>(), out, left, right, product::adds);
  EXPECT_EQ(row(0), (std::vector<T>{18, 24, 30}));
  EXPECT_EQ(row(1), (std::vector<T>{38, 52, 66}));
  // The distance of a single row means nothing.
  multiply(dtype_of<T>(), out.block(1, 1, 0, columns, sizeof(T)), left.block(0, 1, 0, 2, sizeof(T)),
           right, product::replaces);
  EXPECT_EQ(row(1), (std::vector<T>{9, 12, 15}));
  ::munmap(memory, bytes);
}

TEST(Gemm, StoresRowsThatLieFurtherApartThanBlasCounts) {
  expect_multiplied<float>(blas_max + 9);       // negative, as 32 bits
  expect_multiplied<float>(2 * blas_max + 10);  // small, as 32 bits
  expect_multiplied<double>(blas_max + 9);
  expect_multiplied<std::complex<float>>(blas_max + 9);
  expect_multiplied<std::complex<double>>(blas_max + 9);
}

TEST(Gemm, ReadsInPlaceWhatBlasCanCount) {
  const auto readable = [](index_t rows, index_t columns, index_t row_stride,
                           index_t column_stride) {
    return readable_in_place({nullptr, rows, columns, row_stride, column_stride});
  };
  EXPECT_TRUE(readable(2, 3, blas_max, 1));
  EXPECT_TRUE(readable(2, 3, 1, blas_max));
  EXPECT_FALSE(readable(2, 3, blas_max + 1, 1));
  EXPECT_FALSE(readable(2, 3, 1, blas_max + 1));
  EXPECT_FALSE(readable(2, blas_max + 1, blas_max + 1, 1));
  // The distance of a single row or column means nothing.
  EXPECT_TRUE(readable(1, 3, blas_max + 1, 1));
  EXPECT_TRUE(readable(3, 1, 1, blas_max + 1));
  EXPECT_TRUE(readable(1, blas_max + 1, blas_max + 1, 1));
}

TEST(Gemm, CopiesAreStoredSoThatTheyAreReadable) {
  for (const bool preferred : {false, true}) {
    EXPECT_EQ(readable_by_columns(2, 3, preferred), preferred);
    EXPECT_EQ(readable_by_columns(blas_max, blas_max, preferred), preferred);
    EXPECT_TRUE(readable_by_columns(2, blas_max + 1, preferred));
    EXPECT_FALSE(readable_by_columns(blas_max + 1, 2, preferred));
  }
  EXPECT_FALSE(readable_by_columns(1, blas_max + 1, false));
  EXPECT_TRUE(readable_by_columns(blas_max + 1, 1, true));
}

}  // namespace
}  // namespace shale::ops
