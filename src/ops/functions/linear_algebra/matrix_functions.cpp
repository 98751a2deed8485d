#include "shale/matrix_functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "ops/functions/linear_algebra/matrix_operands.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "shale/creation.hpp"
#include "shale/error.hpp"
#include "shale/linalg.hpp"
#include "shale/linear_systems.hpp"
#include "shale/spectra.hpp"

namespace shale {

using namespace ops;
using detail::allocating;
using lapack::integer;

namespace {

// ---- exponentials -------------------------------------------------------------------------------

// The Padé approximant of degree 13 is (even - odd)^-1 (even + odd), where `odd` is the sum of the
// terms with odd powers of the matrix, and `even` of those with even powers. These are the
// coefficients of the powers 0 to 13 (Higham 2005, (2.3)). Up to the 1-norm `exact_norm`, the
// approximant is exact in float64 (table 2.3).
constexpr double coefficients[] = {64764752532480000,
                                   32382376266240000,
                                   7771770303897600,
                                   1187353796428800,
                                   129060195264000,
                                   10559470521600,
                                   670442572800,
                                   33522128640,
                                   1323241920,
                                   40840800,
                                   960960,
                                   16380,
                                   182,
                                   1};
constexpr double exact_norm = 5.371920351148152;

/// The work memory of an exponential: eight matrices and pivots.
template <class T>
struct exponential_memory {
  work_parts parts;
  std::size_t a, a2, a4, a6, odd, even, sum, product, pivots;

  explicit exponential_memory(integer n) {
    for (std::size_t* begin : {&a, &a2, &a4, &a6, &odd, &even, &sum, &product})
      *begin = parts.add<T>(index_t{n} * n);
    pivots = parts.add<integer>(n);
  }
};

/// The 1-norm of a column-major matrix; NaN if an element is NaN.
template <class T>
double largest_column_sum(const T* matrix, integer n) {
  double largest = 0;
  for (index_t column = 0; column < n; ++column) {
    double total = 0;
    for (index_t i = 0; i < n; ++i) total += static_cast<double>(std::abs(matrix[column * n + i]));
    if (std::isnan(total)) return total;
    largest = std::max(largest, total);
  }
  return largest;
}

template <class T>
void multiply_square(integer n, const T* a, const T* b, T* c) {
  lapack::gemm(lapack::operation::none, lapack::operation::none, n, n, n, a, b, c);
}

/// Computes the exponential of the column-major matrix in `memory`. The result lies in `memory`
/// too, and its address is returned.
template <class T>
T* exponential(integer n, const exponential_memory<T>& at, std::byte* memory) {
  using R = lapack::real_of<T>;
  const index_t count = index_t{n} * n;
  T *a = part_at<T>(memory, at.a), *a2 = part_at<T>(memory, at.a2), *a4 = part_at<T>(memory, at.a4),
    *a6 = part_at<T>(memory, at.a6), *odd = part_at<T>(memory, at.odd),
    *even = part_at<T>(memory, at.even), *sum = part_at<T>(memory, at.sum),
    *product = part_at<T>(memory, at.product);
  const double norm = largest_column_sum(a, n);
  if (!std::isfinite(norm)) {
    std::fill_n(a, count, T(std::numeric_limits<R>::quiet_NaN()));
    return a;
  }
  const int halvings =
      norm > exact_norm ? static_cast<int>(std::ceil(std::log2(norm / exact_norm))) : 0;
  for (index_t i = 0; i < count; ++i) a[i] *= static_cast<R>(std::ldexp(1.0, -halvings));
  multiply_square(n, a, a, a2);
  multiply_square(n, a2, a2, a4);
  multiply_square(n, a4, a2, a6);
  const auto b = [](int power) { return static_cast<R>(coefficients[power]); };
  // Adds c[0] + c[2] a^2 + c[4] a^4 + c[6] a^6 to the matrix `to`, where c[i] = b(lowest + i).
  const auto add_powers = [&](T* to, int lowest) {
    for (index_t i = 0; i < count; ++i)
      to[i] += b(lowest + 6) * a6[i] + b(lowest + 4) * a4[i] + b(lowest + 2) * a2[i];
    for (index_t i = 0; i < n; ++i) to[i * n + i] += b(lowest);
  };
  const auto high_powers = [&](int lowest) {
    for (index_t i = 0; i < count; ++i)
      sum[i] = b(lowest + 4) * a6[i] + b(lowest + 2) * a4[i] + b(lowest) * a2[i];
  };
  high_powers(9);
  multiply_square(n, a6, sum, product);
  add_powers(product, 1);
  multiply_square(n, a, product, odd);
  high_powers(8);
  multiply_square(n, a6, sum, even);
  add_powers(even, 0);
  for (index_t i = 0; i < count; ++i) {
    sum[i] = even[i] + odd[i];
    even[i] -= odd[i];
  }
  integer* const pivots = part_at<integer>(memory, at.pivots);
  lapack::getrf(n, n, even, n, pivots);
  lapack::getrs(n, n, even, pivots, sum);
  for (int i = 0; i < halvings; ++i) {
    multiply_square(n, sum, sum, product);
    std::swap(sum, product);
  }
  return sum;
}

/// The norms of matrices by sums, along the axes of one matrix.
expr norm_by_sums(const expr& a, matrix_order order, keepdims keep) {
  const expr size = abs(a);
  const bool keeps = keep == keepdims::yes;
  switch (order) {
    case matrix_order::largest_column_sum:
      return max(sum(size, {-2}, keep), {-1}, keep);
    case matrix_order::smallest_column_sum:
      return min(sum(size, {-2}, keep), {-1}, keep);
    case matrix_order::largest_row_sum:
      return max(sum(size, {-1}, keep), {keeps ? -2 : -1}, keep);
    case matrix_order::smallest_row_sum:
      return min(sum(size, {-1}, keep), {keeps ? -2 : -1}, keep);
    default:
      return sqrt(sum(square(size), {-2, -1}, keep));
  }
}

}  // namespace

tensor matrix_norm(const expr& a, matrix_order order, keepdims keep) {
  return allocating([&] {
    detail::require_enumerator(order, matrix_order::smallest_singular_value, "matrix_order");
    require_matrices(a.shape(), "matrix_norm");
    const dtype result = matrix_dtype(a.dtype(), "matrix_norm"), type = real_dtype(result);
    const expr matrices = astype(a, detail::widened(result));
    if (order != matrix_order::nuclear && order != matrix_order::largest_singular_value &&
        order != matrix_order::smallest_singular_value)
      return eval(astype(norm_by_sums(matrices, order, keep), type));
    const expr values(svdvals(matrices));
    const expr norms = order == matrix_order::nuclear                  ? sum(values, {-1})
                       : order == matrix_order::largest_singular_value ? max(values, {-1})
                                                                       : min(values, {-1});
    return eval(
        astype(keep == keepdims::yes ? norms.expand_dims(-1).expand_dims(-1) : norms, type));
  });
}

tensor matrix_power(const expr& a, index_t exponent) {
  return allocating([&] {
    require_square(a.shape(), "matrix_power");
    matrix_dtype(a.dtype(), "matrix_power");
    if (exponent == 0) return eval(eye(a.shape(-1), {}, 0, a.dtype()).broadcast_to(a.shape()));
    tensor square = exponent < 0 ? inv(a) : eval(a);
    std::uint64_t left = exponent < 0 ? 0 - static_cast<std::uint64_t>(exponent)
                                      : static_cast<std::uint64_t>(exponent);
    tensor result;
    bool found = false;
    while (true) {
      if (left % 2 == 1) {
        result = found ? matmul(result, square) : square;
        found = true;
      }
      left /= 2;
      if (left == 0) return result;
      square = matmul(square, square);
    }
  });
}

tensor expm(const expr& a) {
  return allocating([&] {
    require_square(a.shape(), "expm");
    const held_matrices matrices(a, "expm");
    executor& on = parallel::begin_call();
    const tensor out = tensor::empty(matrices.elements.shape(), matrices.compute, &on.pool());
    const matrix_batch from(matrices.elements), to(out);
    const integer n = from.rows();
    visit(out.dtype(), lapack::types{}, [&]<class T>(std::type_identity<T>) {
      const exponential_memory<T> memory(n);
      const batch_work work{from.count(), memory.parts.bytes(), 10.0 * n * n * n, matrices.bytes()};
      for_each_matrix(work, on, [&](index_t number, std::byte* at) {
        if (n == 0) return integer{0};
        from.load(number, part_at<T>(at, memory.a));
        to.store(number, exponential(n, memory, at));
        return integer{0};
      });
    });
    matrices.elements.storage().check();
    return for_all(out, matrices.result, matrices, 2, on);
  });
}

}  // namespace shale
