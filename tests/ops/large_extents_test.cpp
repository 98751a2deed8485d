// Tests matrices with extents and strides that BLAS and LAPACK, which count in 32 bits, cannot
// count. Elements lie in memory that takes space only where it is written, so that rows may lie
// gigabytes apart; sizes of work memory are asked for without the matrix. Expected values are
// computed by hand.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <complex>
#include <limits>
#include <vector>

#include "ops/linalg/gemm.hpp"
#include "ops/linalg/lapack.hpp"
#include "support/failures.hpp"

namespace shale::ops {
namespace {

using test::code_of;

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

TEST(LargeExtents, ProductsAreStoredInRowsThatLieFarApart) {
  expect_multiplied<float>(blas_max + 9);       // negative, as 32 bits
  expect_multiplied<float>(2 * blas_max + 10);  // small, as 32 bits
  expect_multiplied<double>(blas_max + 9);
  expect_multiplied<std::complex<float>>(blas_max + 9);
  expect_multiplied<std::complex<double>>(blas_max + 9);
}

TEST(LargeExtents, MatricesAreReadInPlaceIfBlasCanCountTheirStrides) {
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

TEST(LargeExtents, CopiesAreStoredSoThatTheyAreReadable) {
  for (const bool preferred : {false, true}) {
    EXPECT_EQ(readable_by_columns(2, 3, preferred), preferred);
    EXPECT_EQ(readable_by_columns(blas_max, blas_max, preferred), preferred);
    EXPECT_TRUE(readable_by_columns(2, blas_max + 1, preferred));
    EXPECT_FALSE(readable_by_columns(blas_max + 1, 2, preferred));
  }
  EXPECT_FALSE(readable_by_columns(1, blas_max + 1, false));
  EXPECT_TRUE(readable_by_columns(blas_max + 1, 1, true));
}

constexpr lapack::integer wide = (1 << 27) + 1;  // 32 times as many are 32, as 32 bits

template <class T>
void expect_work_memory() {
  const auto left = lapack::side::left, right = lapack::side::right;
  EXPECT_GE(lapack::geqrf_work<T>(2, wide), wide);
  EXPECT_GE(lapack::ormqr_work<T>(left, 2, wide, 2), wide);
  EXPECT_GE(lapack::ormqr_work<T>(right, wide, 2, 2), wide);
  // More reflections than LAPACK takes at a time.
  EXPECT_EQ(code_of([] { lapack::geqrf_work<T>(40, wide); }), errc::unsupported);
  EXPECT_EQ(code_of([&] { lapack::ormqr_work<T>(left, 40, wide, 40); }), errc::unsupported);
  EXPECT_EQ(code_of([&] { lapack::ormqr_work<T>(right, wide, 40, 40); }), errc::unsupported);
}

TEST(LargeExtents, WorkMemoryIsEnoughOrRefused) {
  expect_work_memory<float>();
  expect_work_memory<double>();
  expect_work_memory<std::complex<float>>();
  expect_work_memory<std::complex<double>>();
}

TEST(LargeExtents, WorkMemoryOfTheLargestMatricesIsRefused) {
  constexpr auto most = std::numeric_limits<lapack::integer>::max();
  for (const auto wanted : {lapack::vectors::reduced, lapack::vectors::full}) {
    EXPECT_EQ(code_of([&] { lapack::svd_work<double>(wanted, most, most); }), errc::unsupported);
    EXPECT_EQ(code_of([&] { lapack::svd_work<std::complex<float>>(wanted, most, most); }),
              errc::unsupported);
  }
  EXPECT_EQ(code_of([&] { lapack::eigh_work<double>(lapack::vectors::reduced, most); }),
            errc::unsupported);
}

}  // namespace
}  // namespace shale::ops
