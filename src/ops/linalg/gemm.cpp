#include "ops/linalg/gemm.hpp"

#include <cblas.h>

#include <algorithm>
#include <cassert>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/linalg/blas_buffer.hpp"
#include "ops/linalg/blas_kernels.hpp"

namespace shale::ops {

namespace {

/// The parameters of BLAS for a matrix.
struct blas_operand {
  CBLAS_TRANSPOSE transposed;
  index_t leading;
};

constexpr index_t leading_max = std::numeric_limits<blasint>::max();

bool fits_row_major(index_t rows, index_t columns, index_t row_stride, index_t column_stride) {
  const bool dense_rows = column_stride == 1 || columns == 1;
  const bool forwards = row_stride >= std::max<index_t>(1, columns) && row_stride <= leading_max;
  return dense_rows && (rows == 1 || forwards);
}

bool fits_row_major(const matrix& operand) {
  return fits_row_major(operand.rows, operand.columns, operand.row_stride, operand.column_stride);
}

matrix turned(const matrix& of) {
  return {of.first, of.columns, of.rows, of.column_stride, of.row_stride};
}

/// The distance of rows. For a single row it has no meaning, but BLAS requires at least the number
/// of columns.
index_t leading_of(const matrix& row_major) {
  return row_major.rows == 1 ? std::max<index_t>(1, row_major.columns) : row_major.row_stride;
}

blas_operand describe(const matrix& operand) {
  if (fits_row_major(operand)) return {CblasNoTrans, leading_of(operand)};
  assert(fits_row_major(turned(operand)));
  return {CblasTrans, leading_of(turned(operand))};
}

template <class T>
void call_blas(const matrix& out, const matrix& a, const matrix& b, bool accumulate) {
  assert(std::max({out.rows, out.columns, a.columns, leading_of(out)}) <= leading_max);
  const blas_operand left = describe(a), right = describe(b);
  const auto m = static_cast<blasint>(out.rows), n = static_cast<blasint>(out.columns),
             k = static_cast<blasint>(a.columns);
  const auto lda = static_cast<blasint>(left.leading), ldb = static_cast<blasint>(right.leading);
  const auto ldc = static_cast<blasint>(leading_of(out));
  const T alpha = 1, beta = accumulate ? 1 : 0;
  const auto* from_a = reinterpret_cast<const T*>(a.first);
  const auto* from_b = reinterpret_cast<const T*>(b.first);
  auto* to = reinterpret_cast<T*>(out.first);
  if constexpr (std::is_same_v<T, float>)
    cblas_sgemm(CblasRowMajor, left.transposed, right.transposed, m, n, k, alpha, from_a, lda,
                from_b, ldb, beta, to, ldc);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dgemm(CblasRowMajor, left.transposed, right.transposed, m, n, k, alpha, from_a, lda,
                from_b, ldb, beta, to, ldc);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    cblas_cgemm(CblasRowMajor, left.transposed, right.transposed, m, n, k, &alpha, from_a, lda,
                from_b, ldb, &beta, to, ldc);
  else
    cblas_zgemm(CblasRowMajor, left.transposed, right.transposed, m, n, k, &alpha, from_a, lda,
                from_b, ldb, &beta, to, ldc);
}

void copy_rows(const matrix& to, const matrix& from, std::size_t item) {
  for (index_t row = 0; row < to.rows; ++row)
    std::memcpy(to.block(row, 1, 0, to.columns, item).first,
                from.block(row, 1, 0, from.columns, item).first,
                static_cast<std::size_t>(to.columns) * item);
}

/// If rows of `out` lie further apart than BLAS can count, multiplies into a copy without gaps.
template <class T>
void multiply_blas(const matrix& out, const matrix& a, const matrix& b, bool accumulate) {
  if (leading_of(out) <= leading_max) return call_blas<T>(out, a, b, accumulate);
  std::vector<T> elements(static_cast<std::size_t>(out.rows * out.columns));
  const matrix close{reinterpret_cast<std::byte*>(elements.data()), out.rows, out.columns,
                     out.columns, 1};
  if (accumulate) copy_rows(close, out, sizeof(T));
  call_blas<T>(close, a, b, accumulate);
  copy_rows(out, close, sizeof(T));
}

/// Multiplies integers or bools. A row of `out` is the sum of the rows of `b`, each times one
/// element of `a`, so the inner loop runs along rows of `b` and `out`. The columns are cut into
/// panels of 8 KiB: the row of `out` stays in the L1 cache while all rows of `b` are added to it.
template <class T>
void multiply_integers(const matrix& out, const matrix& a, const matrix& b) {
  // Integer arithmetic wraps. For bools, a sum is the bitwise "or" of the bytes of those rows of
  // `b` whose factor is true. It is made 0 or 1 at the end.
  using Bits = std::conditional_t<
      std::is_same_v<T, bool>, std::uint8_t,
      std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>>;
  using Word = std::conditional_t<(sizeof(Bits) < 4), std::uint32_t, Bits>;
  constexpr index_t panel = 8192 / static_cast<index_t>(sizeof(T));
  const auto* from_a = reinterpret_cast<const Bits*>(a.first);
  const auto* from_b = reinterpret_cast<const Bits*>(b.first);
  auto* to = reinterpret_cast<Bits*>(out.first);
  for (index_t first = 0; first < out.columns; first += panel) {
    const index_t columns = std::min(panel, out.columns - first);
    for (index_t row = 0; row < out.rows; ++row) {
      Bits* sums = to + row * out.row_stride + first;
      for (index_t inner = 0; inner < a.columns; ++inner) {
        const Word factor = from_a[row * a.row_stride + inner * a.column_stride];
        if (std::is_same_v<T, bool> && factor == 0) continue;
        const Bits* values = from_b + inner * b.row_stride + first * b.column_stride;
        if (b.column_stride == 1) {
          for (index_t i = 0; i < columns; ++i) {
            if constexpr (std::is_same_v<T, bool>) sums[i] |= values[i];
            else sums[i] = static_cast<Bits>(Word{sums[i]} + factor * Word{values[i]});
          }
        } else {
          for (index_t i = 0; i < columns; ++i) {
            const Word value = values[i * b.column_stride];
            if constexpr (std::is_same_v<T, bool>) sums[i] |= static_cast<Bits>(value);
            else sums[i] = static_cast<Bits>(Word{sums[i]} + factor * value);
          }
        }
      }
      if constexpr (std::is_same_v<T, bool>)
        for (index_t i = 0; i < columns; ++i) sums[i] = sums[i] != 0;
    }
  }
}

void clear(const matrix& out, std::size_t item) {
  for (index_t row = 0; row < out.rows; ++row)
    std::memset(out.first + static_cast<std::size_t>(row * out.row_stride) * item, 0,
                static_cast<std::size_t>(out.columns) * item);
}

}  // namespace

matrix matrix::block(index_t row, index_t count_rows, index_t column, index_t count_columns,
                     std::size_t item_bytes) const {
  const index_t offset = row * row_stride + column * column_stride;
  return {first + offset * static_cast<index_t>(item_bytes), count_rows, count_columns, row_stride,
          column_stride};
}

bool readable_in_place(const matrix& operand) noexcept {
  return fits_row_major(operand) || fits_row_major(turned(operand));
}

bool readable_by_columns(index_t rows, index_t columns, bool preferred) noexcept {
  const matrix by_rows{nullptr, rows, columns, std::max<index_t>(1, columns), 1};
  const matrix by_columns{nullptr, rows, columns, 1, std::max<index_t>(1, rows)};
  return readable_in_place(preferred ? by_columns : by_rows) ? preferred : !preferred;
}

void multiply(dtype type, const matrix& out, const matrix& a, const matrix& b, product mode) {
  using blas_types = type_list<float, double, std::complex<float>, std::complex<double>>;
  using wrapping_types = type_list<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                   std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
  const std::size_t item = item_bytes(type);
  const bool floats = is_inexact(type);
  if (mode == product::replaces && (!floats || a.columns == 0)) clear(out, item);
  if (a.columns == 0) return;
  if (!floats) {
    visit(type, wrapping_types{},
          [&]<class T>(std::type_identity<T>) { multiply_integers<T>(out, a, b); });
    return;
  }
  assert(readable_in_place(a) && readable_in_place(b));
  check_blas_kernels();
  const blas_buffer held;
  // BLAS counts in 32 bits, so a longer inner axis is cut, and the products of the parts are added.
  constexpr index_t most = index_t{1} << 30;
  for (index_t inner = 0; inner < a.columns; inner += most) {
    const index_t count = std::min(most, a.columns - inner);
    const matrix left = a.block(0, a.rows, inner, count, item);
    const matrix right = b.block(inner, count, 0, b.columns, item);
    visit(type, blas_types{}, [&]<class T>(std::type_identity<T>) {
      multiply_blas<T>(out, left, right, mode == product::adds || inner != 0);
    });
  }
}

std::string blas_description() {
  // The text is such as "OpenBLAS 0.3.21 NO_LAPACKE …": name and version come first.
  const std::string config = openblas_get_config();
  const std::size_t end = config.find(' ', config.find(' ') + 1);
  return config.substr(0, end) + ", " + blas_kernels();
}

}  // namespace shale::ops
