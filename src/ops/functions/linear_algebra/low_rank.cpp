#include "shale/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/allocating.hpp"
#include "core/widened.hpp"
#include "ops/functions/linear_algebra/matrix_operands.hpp"
#include "ops/functions/linear_algebra/tall_factors.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "shale/decompositions.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/reductions.hpp"
#include "shale/spectra.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

/// A matrix with more columns for each row is read by columns.
constexpr index_t columns_by_rows_max = 16;

/// The request of the caller, after the checks.
struct low_rank_request {
  index_t rank;
  index_t iterations;
  index_t width;     // of the projection
  bool is_turned;    // the matrix is read by columns
  const char* name;  // of the function

  low_rank_request(const expr& a, index_t wanted, const lowrank_options& options,
                   const char* function)
      : rank(wanted), iterations(options.iterations), name(function) {
    require_one_matrix(a.shape(), name);
    matrix_dtype(a.dtype(), name);
    const index_t least = std::min(a.shape(0), a.shape(1));
    if (rank < 0 || rank > least)
      throw error(errc::invalid_argument,
                  std::string(name) + ": the matrix does not have so many singular values",
                  {"got " + std::to_string(rank) + " and shape " + to_string(a.shape()) +
                   ": wanted 0 to " + std::to_string(least)});
    if (options.oversampling < 0 || iterations < 0)
      throw error(errc::invalid_argument, std::string(name) + ": an option is negative",
                  {"got oversampling " + std::to_string(options.oversampling) + " and iterations " +
                   std::to_string(iterations)});
    width = options.oversampling >= least - rank ? least : rank + options.oversampling;
    is_turned = (a.shape(1) - 1) / columns_by_rows_max >= a.shape(0);
  }
};

/// Factors in the dtype of LAPACK: the product (u * s) vh is near the matrix.
struct low_rank_factors {
  std::shared_ptr<const tile_source> u;
  tensor s;   // (rank)
  tensor vh;  // (rank, columns)
};

/// A row-major or any other matrix as a column-major one of type T.
template <class T>
tensor in_columns(const tensor& matrix, executor& on) {
  const tensor made = empty_columns({}, matrix.shape(0), matrix.shape(1), dtype_of<T>(), on);
  matrix_batch(matrix).load(0, reinterpret_cast<T*>(made.data()));
  return made;
}

template <class T>
tensor random_columns(generator& from, index_t rows, index_t columns, executor& on) {
  const dims shape{rows, columns};
  const expr parts = normal(from, shape);
  if constexpr (lapack::is_complex<T>) {
    const expr others = normal(from, shape);
    return in_columns<T>(eval(parts + others * expr(std::complex<double>(0, 1))), on);
  } else {
    return in_columns<T>(eval(parts), on);
  }
}

/// Makes the first element of the largest magnitude of each row of vh real and positive. The column
/// of u is multiplied by the phase that the row of vh loses, so the product stays the same. Both
/// are row-major without gaps.
template <class T>
void fix_signs(const tensor& u, const tensor& vh) {
  const index_t rank = vh.shape(0), columns = vh.shape(1), rows = u.shape(0);
  for (index_t i = 0; i < rank; ++i) {
    T* const row = reinterpret_cast<T*>(vh.data()) + i * columns;
    T* const largest = std::max_element(
        row, row + columns, [](const T& a, const T& b) { return std::abs(a) < std::abs(b); });
    const auto magnitude = std::abs(*largest);
    if (!(magnitude > 0)) continue;
    const T phase = *largest / magnitude;
    for (index_t k = 0; k < rows; ++k) reinterpret_cast<T*>(u.data())[k * rank + i] *= phase;
    for (index_t k = 0; k < columns; ++k) {
      if constexpr (lapack::is_complex<T>) row[k] *= std::conj(phase);
      else row[k] *= phase;
    }
    *largest = magnitude;  // without an imaginary part from rounding
  }
}

/// Factors from those of a small matrix: q times `u` gives the left vectors.
template <class T>
low_rank_factors factors_of(std::shared_ptr<const tall_factors<T>> q, const expr& u,
                            const tensor& s, const expr& vh, index_t rank, executor& on) {
  const tensor kept_u = eval(u.narrow(1, 0, rank)), kept_vh = eval(vh.narrow(0, 0, rank));
  fix_signs<T>(kept_u, kept_vh);
  return {make_tall_q(std::move(q), in_columns<T>(kept_u, on)), eval(expr(s).narrow(0, 0, rank)),
          kept_vh};
}

template <class T>
void require_no_overflow(const tensor& made, const low_rank_request& wanted) {
  if (has_only_finite(reinterpret_cast<const T*>(made.data()), made.size())) return;
  throw error(errc::invalid_argument, std::string(wanted.name) + ": products overflow",
              {"in " + std::string(name(made.dtype())) + ": scale the matrix first"});
}

svd_result small_svd(const tensor& matrix, const low_rank_request& wanted) {
  return with_context(wanted.name, [&] { return svd(matrix, svd_vectors::reduced); });
}

template <class T>
using shared_factors = std::shared_ptr<const tall_factors<T>>;

/// The factors of a matrix with no more columns than the projection would have.
template <class T>
low_rank_factors exact_factors(const expr& a, const low_rank_request& wanted) {
  const row_blocks cut(a.shape(0), a.shape(1), wanted.width);
  const auto matrix = std::make_shared<const tall_matrix>(a, cut, wanted.name);
  executor& on = matrix->begin_pass();
  const shared_factors<T> q = std::make_shared<const tall_factors<T>>(
      matrix, std::nullopt, leaf_factors::kept, not_finite_elements::refused, on);
  require_no_overflow<T>(q->r(), wanted);
  const svd_result small = small_svd(q->r(), wanted);
  return factors_of<T>(q, small.u, small.s, small.vh, wanted.rank, on);
}

// The range of a is found by multiplying random vectors by a, its adjoint, and a again, as often as
// power iterations are wanted. Products are made orthonormal each time. Otherwise, all columns
// would tend to the first singular vector, and the parts that belong to small singular values would
// be rounded away. The products of a with vectors, y, have as many rows as a. They are not held: a
// pass over a computes the triangle r of y = q r, and the next pass computes each block of y again,
// and from it the block of q. The product z of the adjoint with q is held.
//
// In the end, q is near the range of a, so a is near q q^H a = q z^H. The singular values and right
// vectors of z^H are those of q z^H, and q times its left vectors are the left vectors.
template <class T>
low_rank_factors projected_factors(generator& from, const expr& a, const low_rank_request& wanted) {
  const row_blocks cut(a.shape(0), a.shape(1), wanted.width);
  const auto matrix = std::make_shared<const tall_matrix>(a, cut, wanted.name);
  executor& first_on = executor::current();
  tensor projection = random_columns<T>(from, a.shape(1), wanted.width, first_on);
  for (index_t iteration = 0;; ++iteration) {
    executor& on = matrix->begin_pass();
    const shared_factors<T> q = std::make_shared<const tall_factors<T>>(
        matrix, projection, leaf_factors::kept, not_finite_elements::refused, on);
    require_no_overflow<T>(q->r(), wanted);
    const tensor z = q->adjoint_times_q(matrix->begin_pass());
    require_no_overflow<T>(z, wanted);
    if (iteration < wanted.iterations) {
      projection = in_columns<T>(qr(z).q, on);
      continue;
    }
    // z = u s vh, so z^H = vh^H s u^H.
    const svd_result small = small_svd(z, wanted);
    return factors_of<T>(q, conj(expr(small.vh)).swapaxes(0, 1), small.s,
                         conj(expr(small.u)).swapaxes(0, 1), wanted.rank, on);
  }
}

/// The factors of a matrix that is not turned. It has elements, and the rank is not 0.
low_rank_factors factors_by_rows(generator& from, const expr& a, const low_rank_request& wanted) {
  const dtype computed = detail::widened(matrix_dtype(a.dtype(), wanted.name));
  return visit(computed, lapack::types{}, [&]<class T>(std::type_identity<T>) {
    return wanted.width == a.shape(1) ? exact_factors<T>(a, wanted)
                                      : projected_factors<T>(from, a, wanted);
  });
}

/// The result for a matrix of any shape, in the dtype `type`. A turned matrix is the product
/// (u * s) vh of its transpose's factors, so these are exchanged and transposed.
lowrank_result low_rank_result_of(generator& from, const expr& a, const low_rank_request& wanted,
                                  dtype type) {
  const dtype real_type = real_dtype(type);
  if (wanted.rank == 0) {
    memory_pool* const pool = &executor::current().pool();
    return {tensor::zeros({a.shape(0), 0}, type, pool), tensor::zeros({0}, real_type, pool),
            tensor::zeros({0, a.shape(1)}, type, pool)};
  }
  const low_rank_factors found =
      factors_by_rows(from, wanted.is_turned ? a.swapaxes(0, 1) : a, wanted);
  const expr left = astype(expr(found.u), type);
  const tensor right = eval(astype(expr(found.vh), type));
  const tensor s = eval(astype(expr(found.s), real_type));
  if (!wanted.is_turned) return {left, s, right};
  return {right.swapaxes(0, 1), s, left.swapaxes(0, 1)};
}

/// As fix_signs, for rows of components alone.
void fix_signs_of_rows(const tensor& rows) {
  visit(rows.dtype(), lapack::types{}, [&]<class T>(std::type_identity<T>) {
    fix_signs<T>(tensor::empty({0, rows.shape(0)}, rows.dtype()), rows);
  });
}

pca_result components_of(generator& from, const expr& samples, const low_rank_request& wanted) {
  const dtype type = matrix_dtype(samples.dtype(), wanted.name), real_type = real_dtype(type);
  const dtype computed = detail::widened(type);
  const expr values = astype(samples, computed);
  const expr moments[] = {mean(values, {0}), sum(var(values, {0}, keepdims::no, 1))};
  const std::vector<tensor> known = eval_all(moments);
  const lowrank_result found = low_rank_result_of(from, values - expr(known[0]), wanted, computed);
  const tensor components = eval(found.vh);
  if (wanted.is_turned) fix_signs_of_rows(components);
  const double divisor = static_cast<double>(samples.shape(0) - 1);
  // The square alone may overflow.
  const expr variances = expr(found.s) * (expr(found.s) / divisor);
  const expr total = known[1];
  const auto of_type = [](const expr& value, dtype to) { return eval(astype(value, to)); };
  return {of_type(known[0], type), of_type(components, type), of_type(variances, real_type),
          of_type(where(total == 0, expr(0), variances / total), real_type),
          of_type(found.s, real_type)};
}

}  // namespace

lowrank_result svd_lowrank(generator& from, const expr& a, index_t rank,
                           const lowrank_options& options) {
  return allocating([&] {
    const low_rank_request wanted(a, rank, options, "svd_lowrank");
    generator drawn = from;
    const lowrank_result found =
        low_rank_result_of(drawn, a, wanted, matrix_dtype(a.dtype(), wanted.name));
    from = drawn;
    return found;
  });
}

pca_result pca(generator& from, const expr& samples, index_t count,
               const lowrank_options& options) {
  return allocating([&] {
    const low_rank_request wanted(samples, count, options, "pca");
    if (samples.shape(0) < 2)
      throw error(errc::invalid_argument, "pca needs at least two samples",
                  {"got shape " + to_string(samples.shape()) + ": samples are rows"});
    generator drawn = from;
    const pca_result found = components_of(drawn, samples, wanted);
    from = drawn;
    return found;
  });
}

}  // namespace shale
