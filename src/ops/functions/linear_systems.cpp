#include "shale/linear_systems.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "ops/functions/matrix_operands.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;
using lapack::integer;
using lapack::integer_of;

namespace {

double cube(integer n) { return static_cast<double>(n) * n * n; }

lapack::part as_part(triangle part) {
  detail::require_enumerator(part, triangle::upper, "triangle");
  return part == triangle::lower ? lapack::part::lower : lapack::part::upper;
}

[[noreturn]] void throw_singular(const failed_matrix& failed, const held_matrices& a) {
  a.throw_about(failed, "a matrix is singular",
                "pivot " + std::to_string(failed.info) + " of its LU factorization is zero");
}

[[noreturn]] void throw_zero_on_diagonal(const failed_matrix& failed, const held_matrices& a) {
  a.throw_about(failed, "a triangular matrix is singular",
                "element " + std::to_string(failed.info) + " of its diagonal is zero");
}

// ---- NaN ----------------------------------------------------------------------------------------

// The search for pivots compares magnitudes, and with NaN its outcome differs between the kernels of
// OpenBLAS: some lose the NaN. So matrices with NaN are not factored: their results are NaN.

template <class T>
constexpr T not_a_number() {
  using R = lapack::real_of<T>;
  constexpr R part = std::numeric_limits<R>::quiet_NaN();
  if constexpr (lapack::is_complex<T>) return {part, part};
  else return part;
}

/// Fills a matrix that has a NaN with NaN.
template <class T>
bool filled_with_nan(T* matrix, index_t count) {
  const bool found = std::any_of(matrix, matrix + count, [](T value) { return value != value; });
  if (found) std::fill_n(matrix, count, not_a_number<T>());
  return found;
}

// ---- matrices that are prepared once ------------------------------------------------------------

/// Column-major matrices in the dtype of LAPACK, ready to solve equations with.
struct prepared_matrices {
  tensor elements;
  tensor pivots;  // int32, (…, 1, n): of LU factorizations
};

/// Copies all matrices of an operand to column-major memory in `type`, and calls `prepare` for
/// each, with the elements and room for pivots. A matrix for which it returns a number is handed to
/// `fail`.
template <class T, class Prepare, class Fail>
prepared_matrices prepared(const held_matrices& a, executor& on, double multiplications,
                           Prepare prepare, Fail fail) {
  const matrix_batch from(a.elements);
  const index_t n = from.rows();
  const prepared_matrices made{
      empty_columns(a.batch(), n, n, dtype_of<T>(), on),
      tensor::empty(with_matrix(a.batch(), 1, n), dtype::int32, &on.pool())};
  const matrix_batch to(made.elements), pivots(made.pivots);
  const batch_work work{from.count(), 0, multiplications, a.bytes()};
  const auto failed = for_each_matrix(work, on, [&](index_t number, std::byte*) {
    T* const matrix = to.at<T>(number);
    from.load(number, matrix);
    return prepare(matrix, pivots.at<integer>(number));
  });
  a.elements.storage().check();
  if (failed) fail(*failed, a);
  return made;
}

/// The right sides of a system of equations.
struct right_sides {
  tensor elements;  // (…, n, k)
  bool vector;      // it was (n)

  right_sides(const expr& a, const expr& b, const char* function) : vector(b.rank() == 1) {
    require_square(a.shape(), function);
    matrix_dtype(b.dtype(), function);
    const index_t rows = b.rank() == 0 ? -1 : vector ? b.shape(0) : b.shape(-2);
    if (rows != a.shape(-1))
      throw error(errc::invalid_argument,
                  std::string(function) + ": the right sides do not have the matrix's extent",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) + ": " +
                   std::to_string(a.shape(-1)) + " rows are wanted"});
    broadcast_shapes(batch_of(a.shape()), vector ? dims() : batch_of(b.shape()));
    elements = held_operand(vector ? b.expand_dims(1) : b);
  }
};

/// Solves equations with prepared matrices: `apply(elements, pivots, k, b)` replaces the n x k
/// elements of b.
template <class T, class Apply>
tensor solved(const prepared_matrices& a, const dims& shape, const right_sides& b, executor& on,
              Apply apply) {
  const dims batch = broadcast_shapes(batch_of(shape), batch_of(b.elements.shape()));
  const index_t n = shape.back(), k = b.elements.shape(-1);
  const tensor out = tensor::empty(with_matrix(batch, n, k), dtype_of<T>(), &on.pool());
  const matrix_batch to(out), from(b.elements.broadcast_to(out.shape()));
  const matrix_batch matrices(a.elements.broadcast_to(with_matrix(batch, n, n)));
  const matrix_batch pivots(a.pivots.broadcast_to(with_matrix(batch, 1, n)));
  work_parts parts;
  if (k > 1) parts.add<T>(n * k);
  const batch_work work{to.count(), parts.bytes(),
                        static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(k),
                        parallel::distinct_bytes(b.elements)};
  for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
    // One column lies in memory as LAPACK wants it.
    T* const x = k > 1 ? part_at<T>(memory, 0) : to.at<T>(number);
    from.load(number, x);
    if (n > 0 && k > 0) apply(matrices.at<T>(number), pivots.at<integer>(number), to.columns(), x);
    if (k > 1) to.store(number, x);
    return integer{0};
  });
  b.elements.storage().check();
  return b.vector ? out.squeeze(-1) : out;
}

/// Prepares the matrices, and solves with them, in the dtype that both operands promote to.
template <class Prepare, class Fail, class Apply>
tensor solve_with(const expr& a, const expr& b, const char* function, double multiplications_n3,
                  Prepare prepare, Fail fail, Apply apply) {
  const right_sides sides(a, b, function);
  const dtype type = promote(matrix_dtype(a.dtype(), function), matrix_dtype(b.dtype(), function));
  const held_matrices matrices(a, function);
  executor& on = parallel::begin_call();
  const integer n = integer_of(a.shape(-1));
  const tensor result =
      visit(computed_as(type), lapack::types{}, [&]<class T>(std::type_identity<T>) {
        const prepared_matrices ready = prepared<T>(
            matrices, on, multiplications_n3 * cube(n),
            [&](T* elements, integer* pivots) { return prepare(n, elements, pivots); }, fail);
        return solved<T>(ready, a.shape(), sides, on,
                         [&](const T* elements, const integer* pivots, integer k, T* x) {
                           apply(n, elements, pivots, k, x);
                         });
      });
  return rounded(result, type, on);
}

/// The number, from 1, of the first zero on the diagonal of a column-major matrix, or 0.
template <class T>
integer first_zero_on_diagonal(integer n, const T* matrix) {
  for (index_t i = 0; i < n; ++i)
    if (matrix[i * n + i] == T(0)) return static_cast<integer>(i + 1);
  return 0;
}

// ---- results of the shape of the operand --------------------------------------------------------

/// A new matrix for each square one: `compute(n, elements, pivots, work, work_count)` replaces the
/// elements of a column-major copy. `work_elements(n)` says how much work memory it wants.
template <class WorkElements, class Compute, class Fail>
tensor transformed(const expr& a, const char* function, WorkElements work_elements, Compute compute,
                   Fail fail) {
  require_square(a.shape(), function);
  const held_matrices matrices(a, function);
  executor& on = parallel::begin_call();
  const tensor result =
      visit(matrices.compute, lapack::types{}, [&]<class T>(std::type_identity<T> as) {
        const matrix_batch from(matrices.elements);
        const integer n = from.rows();
        const tensor out = tensor::empty(matrices.elements.shape(), dtype_of<T>(), &on.pool());
        const matrix_batch to(out);
        const index_t work_count = n == 0 ? 1 : work_elements(as, n);
        work_parts parts;
        const std::size_t elements = parts.add<T>(index_t{n} * n);
        const std::size_t pivots = parts.add<integer>(n);
        const std::size_t rest = parts.add<T>(work_count);
        const batch_work work{from.count(), parts.bytes(), cube(n), matrices.bytes()};
        const auto failed = for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
          if (n == 0) return integer{0};
          T* const matrix = part_at<T>(memory, elements);
          from.load(number, matrix);
          const integer info = compute(n, matrix, part_at<integer>(memory, pivots),
                                       part_at<T>(memory, rest), integer_of(work_count));
          if (info == 0) to.store(number, matrix);
          return info;
        });
        matrices.elements.storage().check();
        if (failed) fail(*failed, matrices);
        return out;
      });
  return rounded(result, matrices.result, on).broadcast_to(a.shape()).contiguous(&on.pool());
}

constexpr auto no_work = []<class T>(std::type_identity<T>, integer) { return index_t{1}; };

/// Makes all elements 0 that are not in a triangle.
template <class T>
void clear_outside(triangle part, integer n, T* matrix) {
  for (index_t column = 0; column < n; ++column) {
    T* const first = matrix + column * n;
    if (part == triangle::lower) std::fill(first, first + column, T(0));
    else std::fill(first + column + 1, first + n, T(0));
  }
}

/// Fills the other triangle of a Hermitian matrix.
template <class T>
void mirror(triangle part, integer n, T* matrix) {
  for (index_t column = 0; column < n; ++column)
    for (index_t row = column + 1; row < n; ++row) {
      T& below = matrix[column * n + row];
      T& above = matrix[row * n + column];
      T& made = part == triangle::lower ? above : below;
      const T& given = part == triangle::lower ? below : above;
      if constexpr (lapack::is_complex<T>) made = std::conj(given);
      else made = given;
    }
}

// ---- determinants -------------------------------------------------------------------------------

/// A product of many factors, which neither overflows nor underflows on the way.
template <class T>
class scaled_product {
 public:
  void multiply(T factor) {
    value_ *= normalized(factor);
    value_ = normalized(value_);
  }

  T value() const {
    const auto exponent = static_cast<int>(std::clamp<index_t>(exponent_, -100000, 100000));
    return scaled(value_, exponent);
  }

 private:
  using R = lapack::real_of<T>;

  static T scaled(T value, int exponent) {
    if constexpr (lapack::is_complex<T>)
      return {std::scalbn(value.real(), exponent), std::scalbn(value.imag(), exponent)};
    else return std::scalbn(value, exponent);
  }

  /// Keeps the exponent of a number apart. Zero, infinity and NaN have none.
  T normalized(T value) {
    const R size = std::max(std::abs(std::real(value)), std::abs(std::imag(value)));
    if (!(size > 0) || !std::isfinite(size)) return value;
    const int exponent = std::ilogb(size);
    exponent_ += exponent;
    return scaled(value, -exponent);
  }

  T value_ = 1;
  index_t exponent_ = 0;
};

/// The type in which the pivots of matrices of T are combined.
template <class T>
using wide_of = std::conditional_t<lapack::is_complex<T>, std::complex<double>, double>;

/// Calls `take(number, pivots..., exchanges)` with the LU factors of every matrix: the column-major
/// factors and whether an odd number of rows were exchanged.
template <class T, class Take>
void for_each_factored(const held_matrices& a, executor& on, Take take) {
  const matrix_batch from(a.elements);
  const integer n = from.rows();
  work_parts parts;
  const std::size_t elements = parts.add<T>(index_t{n} * n), pivots = parts.add<integer>(n);
  const batch_work work{from.count(), parts.bytes(), cube(n) / 3, a.bytes()};
  for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
    T* const matrix = part_at<T>(memory, elements);
    integer* const exchanged = part_at<integer>(memory, pivots);
    bool singular = false, odd = false;
    if (n > 0) {
      from.load(number, matrix);
      std::iota(exchanged, exchanged + n, 1);
      if (!filled_with_nan(matrix, index_t{n} * n))
        singular = lapack::getrf(n, n, matrix, n, exchanged) != 0;
      for (integer i = 0; i < n; ++i) odd ^= exchanged[i] != i + 1;
    }
    take(number, matrix, singular, odd);
    return integer{0};
  });
  a.elements.storage().check();
}

template <class T>
T determinant(integer n, const T* factors, bool singular, bool odd) {
  if (singular) return 0;
  scaled_product<wide_of<T>> product;
  for (index_t i = 0; i < n; ++i) product.multiply(wide_of<T>(factors[i * n + i]));
  return static_cast<T>(odd ? -product.value() : product.value());
}

template <class T>
struct sign_and_logarithm {
  T sign;
  lapack::real_of<T> logarithm;
};

template <class T>
sign_and_logarithm<T> logarithmic_determinant(integer n, const T* factors, bool singular,
                                              bool odd) {
  using R = lapack::real_of<T>;
  if (singular) return {0, -std::numeric_limits<R>::infinity()};
  wide_of<T> sign = odd ? -1 : 1;
  double logarithm = 0;
  for (index_t i = 0; i < n; ++i) {
    const wide_of<T> pivot(factors[i * n + i]);
    const double size = std::abs(pivot);
    if constexpr (lapack::is_complex<T>) sign *= pivot / size;
    else if (pivot < 0) sign = -sign;
    logarithm += std::log(size);
  }
  return {static_cast<T>(sign), static_cast<R>(logarithm)};
}

/// A result for each matrix of the operand's batch, also of a broadcast one.
tensor of_batch(const tensor& computed, dtype type, const expr& a, executor& on) {
  return rounded(computed, type, on).broadcast_to(batch_of(a.shape())).contiguous(&on.pool());
}

}  // namespace

tensor solve(const expr& a, const expr& b) {
  return allocating([&] {
    return solve_with(
        a, b, "solve", 1.0 / 3,
        []<class T>(integer n, T* elements, integer* pivots) {
          if (n == 0) return 0;
          // A pivot of 0, which getrf never gives, marks a matrix with NaN.
          pivots[0] = 0;
          return filled_with_nan(elements, index_t{n} * n)
                     ? 0
                     : lapack::getrf(n, n, elements, n, pivots);
        },
        throw_singular,
        []<class T>(integer n, const T* elements, const integer* pivots, integer k, T* x) {
          if (pivots[0] == 0) std::fill_n(x, index_t{n} * k, not_a_number<T>());
          else lapack::getrs(n, k, elements, pivots, x);
        });
  });
}

tensor inv(const expr& a) {
  return allocating([&] {
    return transformed(
        a, "inv",
        []<class T>(std::type_identity<T>, integer n) { return lapack::getri_work<T>(n); },
        []<class T>(integer n, T* matrix, integer* pivots, T* work, integer work_count) {
          if (filled_with_nan(matrix, index_t{n} * n)) return 0;
          const integer info = lapack::getrf(n, n, matrix, n, pivots);
          return info != 0 ? info : lapack::getri(n, matrix, pivots, work, work_count);
        },
        throw_singular);
  });
}

tensor det(const expr& a) {
  return allocating([&] {
    require_square(a.shape(), "det");
    const held_matrices matrices(a, "det");
    executor& on = parallel::begin_call();
    const tensor out = tensor::empty(matrices.batch(), matrices.compute, &on.pool());
    visit(matrices.compute, lapack::types{}, [&]<class T>(std::type_identity<T>) {
      const auto n = static_cast<integer>(matrices.elements.shape(-1));
      T* const to = reinterpret_cast<T*>(out.data());
      for_each_factored<T>(matrices, on,
                           [&](index_t number, const T* factors, bool singular, bool odd) {
                             to[number] = determinant(n, factors, singular, odd);
                           });
    });
    return of_batch(out, matrices.result, a, on);
  });
}

slogdet_result slogdet(const expr& a) {
  return allocating([&] {
    require_square(a.shape(), "slogdet");
    const held_matrices matrices(a, "slogdet");
    executor& on = parallel::begin_call();
    const tensor sign = tensor::empty(matrices.batch(), matrices.compute, &on.pool());
    const tensor logarithm =
        tensor::empty(matrices.batch(), real_dtype(matrices.compute), &on.pool());
    visit(matrices.compute, lapack::types{}, [&]<class T>(std::type_identity<T>) {
      using R = lapack::real_of<T>;
      const auto n = static_cast<integer>(matrices.elements.shape(-1));
      T* const signs = reinterpret_cast<T*>(sign.data());
      R* const logarithms = reinterpret_cast<R*>(logarithm.data());
      for_each_factored<T>(matrices, on,
                           [&](index_t number, const T* factors, bool singular, bool odd) {
                             const auto found = logarithmic_determinant(n, factors, singular, odd);
                             signs[number] = found.sign;
                             logarithms[number] = found.logarithm;
                           });
    });
    return slogdet_result{of_batch(sign, matrices.result, a, on),
                          of_batch(logarithm, real_dtype(matrices.result), a, on)};
  });
}

tensor cholesky(const expr& a, triangle part) {
  return allocating([&] {
    const lapack::part stored = as_part(part);
    return transformed(
        a, "cholesky", no_work,
        [&]<class T>(integer n, T* matrix, integer*, T*, integer) {
          const integer info = lapack::potrf(stored, n, matrix);
          clear_outside(part, n, matrix);
          return info;
        },
        [](const failed_matrix& failed, const held_matrices& matrices) {
          matrices.throw_about(
              failed, "a matrix is not positive definite",
              "its leading minor of order " + std::to_string(failed.info) + " is not positive");
        });
  });
}

tensor cholesky_solve(const expr& factor, const expr& b, triangle part) {
  return allocating([&] {
    const lapack::part stored = as_part(part);
    return solve_with(
        factor, b, "cholesky_solve", 0.0,
        []<class T>(integer n, const T* matrix, integer*) {
          return first_zero_on_diagonal(n, matrix);
        },
        throw_zero_on_diagonal,
        [&]<class T>(integer n, const T* matrix, const integer*, integer k, T* x) {
          lapack::potrs(stored, n, k, matrix, x);
        });
  });
}

tensor cholesky_inverse(const expr& factor, triangle part) {
  return allocating([&] {
    const lapack::part stored = as_part(part);
    return transformed(
        factor, "cholesky_inverse", no_work,
        [&]<class T>(integer n, T* matrix, integer*, T*, integer) {
          const integer zero = first_zero_on_diagonal(n, matrix);
          if (zero != 0) return zero;
          const integer info = lapack::potri(stored, n, matrix);
          mirror(part, n, matrix);
          return info;
        },
        throw_zero_on_diagonal);
  });
}

tensor triangular_solve(const expr& a, const expr& b, const triangular_options& options) {
  return allocating([&] {
    const lapack::part stored = as_part(options.part);
    detail::require_enumerator(options.use, matrix_use::conjugate_transposed, "matrix_use");
    const auto how = options.use == matrix_use::as_is ? lapack::operation::none
                     : options.use == matrix_use::transposed
                         ? lapack::operation::transpose
                         : lapack::operation::conjugate_transpose;
    const bool ones = options.unit == unit_diagonal::yes;
    const auto diagonal = ones ? lapack::diagonal::ones : lapack::diagonal::stored;
    return solve_with(
        a, b, "triangular_solve", 0.0,
        [&]<class T>(integer n, const T* matrix, integer*) {
          return ones ? 0 : first_zero_on_diagonal(n, matrix);
        },
        throw_zero_on_diagonal,
        [&]<class T>(integer n, const T* matrix, const integer*, integer k, T* x) {
          lapack::trsm(stored, how, diagonal, n, k, matrix, x);
        });
  });
}

}  // namespace shale
