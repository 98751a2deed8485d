// Systems of equations with factored or triangular matrices: the common parts of `solve` and
// similar functions.
#pragma once

#include <string>
#include <type_traits>

#include "core/widened.hpp"
#include "ops/functions/linear_algebra/matrix_operands.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "shale/error.hpp"
#include "shale/linear_systems.hpp"

namespace shale::ops {

inline double cube(lapack::integer n) { return static_cast<double>(n) * n * n; }

// ---- matrices that are prepared once ------------------------------------------------------------

/// Column-major matrices in the dtype of LAPACK, ready to solve equations with.
struct prepared_matrices {
  tensor elements;
  tensor pivots;  // int32, (…, 1, n): of LU factorizations
};

/// Copies all matrices of an operand to column-major memory, as elements of T, and calls
/// `prepare(elements, pivots)` for each, with room for pivots. It returns 0, or LAPACK's `info` if
/// the matrix cannot be prepared. `fail(failed, a)` then throws an error about the first such
/// matrix.
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
    return prepare(matrix, pivots.at<lapack::integer>(number));
  });
  a.elements.storage().check();
  if (failed) fail(*failed, a);
  return made;
}

/// The right-hand sides of a system of equations.
struct right_sides {
  tensor elements;  // (…, n, k)
  bool vector;      // the operand had the shape (n)

  right_sides(const expr& a, const expr& b, const char* function) : vector(b.rank() == 1) {
    require_square(a.shape(), function);
    matrix_dtype(b.dtype(), function);
    const index_t rows = b.rank() == 0 ? -1 : vector ? b.shape(0) : b.shape(-2);
    if (rows != a.shape(-1))
      throw error(errc::invalid_argument,
                  std::string(function) +
                      ": the right-hand sides have another number of rows than the matrix",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) + ": " +
                   std::to_string(a.shape(-1)) + " rows are wanted"});
    broadcast_shapes(batch_of(a.shape()), vector ? dims() : batch_of(b.shape()));
    elements = held_operand(vector ? b.expand_dims(1) : b);
  }
};

/// Solves equations with prepared matrices: `apply(elements, pivots, k, b)` replaces the n x k
/// elements of b by the solution.
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
    if (n > 0 && k > 0)
      apply(matrices.at<T>(number), pivots.at<lapack::integer>(number), to.columns(), x);
    if (k > 1) to.store(number, x);
    return lapack::integer{0};
  });
  b.elements.storage().check();
  return b.vector ? out.squeeze(-1) : out;
}

/// Prepares the matrices, and solves with them, in the dtype that both operands promote to. If
/// pivots of shape (…, 1, n) are given, they replace those that `prepare` stores.
template <class Prepare, class Fail, class Apply>
tensor solve_with(const expr& a, const expr& b, const char* function, double multiplications_n3,
                  Prepare prepare, Fail fail, Apply apply, const tensor* pivots_or_null = nullptr) {
  const right_sides sides(a, b, function);
  const dtype type = promote(matrix_dtype(a.dtype(), function), matrix_dtype(b.dtype(), function));
  const held_matrices matrices(a, function);
  executor& on = parallel::begin_call();
  const lapack::integer n = lapack::integer_of(a.shape(-1));
  const tensor result =
      visit(detail::widened(type), lapack::types{}, [&]<class T>(std::type_identity<T>) {
        prepared_matrices ready = prepared<T>(
            matrices, on, multiplications_n3 * cube(n),
            [&](T* elements, lapack::integer* pivots) { return prepare(n, elements, pivots); },
            fail);
        if (pivots_or_null != nullptr) ready.pivots = *pivots_or_null;
        return solved<T>(ready, a.shape(), sides, on,
                         [&](const T* elements, const lapack::integer* pivots, lapack::integer k,
                             T* x) { apply(n, elements, pivots, k, x); });
      });
  return rounded(result, type, on);
}

}  // namespace shale::ops
