#include "shale/linear_systems.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "ops/functions/linear_algebra/equations.hpp"
#include "ops/functions/linear_algebra/lu.hpp"
#include "ops/functions/linear_algebra/matrix_operands.hpp"
#include "ops/functions/linear_algebra/triangles.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;
using lapack::integer;
using lapack::integer_of;

namespace {

[[noreturn]] void throw_singular(const failed_matrix& failed, const held_matrices& a) {
  a.throw_about(failed, "a matrix is singular",
                diagonal_element(failed.info) + " of its LU factor u is zero");
}

// ---- results of the shape of the operand --------------------------------------------------------

/// Makes a new matrix from each square matrix: `compute(n, elements, pivots, work, work_count)`
/// replaces the elements of a column-major copy. `work_elements(as, n)` returns how many elements
/// of work memory that needs.
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
        const std::size_t work_at = parts.add<T>(work_count);
        const batch_work work{from.count(), parts.bytes(), cube(n), matrices.bytes()};
        const auto failed = for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
          if (n == 0) return integer{0};
          T* const matrix = part_at<T>(memory, elements);
          from.load(number, matrix);
          const integer info = compute(n, matrix, part_at<integer>(memory, pivots),
                                       part_at<T>(memory, work_at), integer_of(work_count));
          if (info == 0) to.store(number, matrix);
          return info;
        });
        matrices.elements.storage().check();
        if (failed) fail(*failed, matrices);
        return out;
      });
  return for_all(result, matrices.result, matrices, 2, on);
}

constexpr auto no_work = []<class T>(std::type_identity<T>, integer) { return index_t{1}; };

// ---- determinants -------------------------------------------------------------------------------

/// A product of many factors. Its intermediate results neither overflow nor underflow.
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

  /// Adds the exponent of a number to `exponent_`, and returns the number without it. Zero,
  /// infinity and NaN have no exponent, and stay as they are.
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

/// Whether an odd number of rows of a square matrix were exchanged.
template <class T>
bool has_odd_permutation(integer n, const lu_of_matrix<T>& factors) {
  bool odd = false;
  for (integer i = 0; i < n; ++i) odd ^= factors.pivots[i] != i + 1;
  return odd;
}

template <class T>
T determinant(integer n, const lu_of_matrix<T>& factors) {
  if (factors.singular) return 0;
  scaled_product<wide_of<T>> product;
  for (index_t i = 0; i < n; ++i) product.multiply(wide_of<T>(factors.packed[i * n + i]));
  return static_cast<T>(has_odd_permutation(n, factors) ? -product.value() : product.value());
}

template <class T>
struct sign_and_logarithm {
  T sign;
  lapack::real_of<T> logarithm;
};

template <class T>
sign_and_logarithm<T> logarithmic_determinant(integer n, const lu_of_matrix<T>& factors) {
  using R = lapack::real_of<T>;
  if (factors.singular) return {0, -std::numeric_limits<R>::infinity()};
  wide_of<T> sign = has_odd_permutation(n, factors) ? -1 : 1;
  double logarithm = 0;
  for (index_t i = 0; i < n; ++i) {
    const wide_of<T> pivot(factors.packed[i * n + i]);
    const double size = std::abs(pivot);
    if constexpr (lapack::is_complex<T>) sign *= pivot / size;
    else if (pivot < 0) sign = -sign;
    logarithm += std::log(size);
  }
  return {static_cast<T>(sign), static_cast<R>(logarithm)};
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
      const auto store = [&](const lu_of_matrix<T>& factors) {
        to[factors.number] = determinant(n, factors);
      };
      for_each_lu<T>(matrices, on, cube(n) / 3, filled_with_nan<T>, store);
    });
    return for_all(out, matrices.result, matrices, 0, on);
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
      const auto store = [&](const lu_of_matrix<T>& factors) {
        const auto found = logarithmic_determinant(n, factors);
        signs[factors.number] = found.sign;
        logarithms[factors.number] = found.logarithm;
      };
      for_each_lu<T>(matrices, on, cube(n) / 3, filled_with_nan<T>, store);
    });
    return slogdet_result{for_all(sign, matrices.result, matrices, 0, on),
                          for_all(logarithm, real_dtype(matrices.result), matrices, 0, on)};
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
    const auto op = options.use == matrix_use::as_is ? lapack::operation::none
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
          lapack::trsm(stored, op, diagonal, n, k, matrix, x);
        });
  });
}

}  // namespace shale
