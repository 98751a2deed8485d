#include "shale/spectra.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>
#include <string>
#include <type_traits>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "ops/functions/linear_algebra/matrix_operands.hpp"
#include "ops/functions/linear_algebra/triangles.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;
using lapack::integer;

namespace {

/// Stands for a matrix that has an element that is NaN or infinite. LAPACK never returns this
/// number.
constexpr integer not_finite = -1;

void require_success(const std::optional<failed_matrix>& failed, const held_matrices& a) {
  a.elements.storage().check();
  if (!failed) return;
  if (failed->info == not_finite)
    a.throw_about(*failed, "a matrix has an element that is NaN or infinite",
                  "the iteration would not end");
  a.throw_about(*failed, "no convergence",
                "LAPACK gave up (its info is " + std::to_string(failed->info) + ")");
}

template <class T>
bool all_finite(const T* values, index_t count) {
  return std::all_of(values, values + count, [](const T& value) {
    return std::isfinite(std::real(value)) && std::isfinite(std::imag(value));
  });
}

/// Whether one triangle of a column-major matrix has only finite elements.
template <class T>
bool triangle_is_finite(lapack::part stored, integer n, const T* matrix) {
  for (index_t column = 0; column < n; ++column) {
    const bool below = stored == lapack::part::lower;
    const T* const first = matrix + column * n + (below ? column : 0);
    if (!all_finite(first, below ? n - column : column + 1)) return false;
  }
  return true;
}

/// Where the work memory of an iteration lies.
template <class T>
struct iteration_memory {
  lapack::work_sizes sizes;
  std::size_t elements, reals, integers;

  iteration_memory(const lapack::work_sizes& wanted, work_parts& parts)
      : sizes(wanted),
        elements(parts.add<T>(wanted.elements)),
        reals(parts.add<lapack::real_of<T>>(wanted.reals)),
        integers(parts.add<integer>(wanted.integers)) {}

  lapack::work_memory<T> at(std::byte* memory) const {
    return {part_at<T>(memory, elements), part_at<lapack::real_of<T>>(memory, reals),
            part_at<integer>(memory, integers), sizes};
  }
};

double work_of(integer rows, integer columns, double factor) {
  return factor * static_cast<double>(rows) * static_cast<double>(columns) *
         static_cast<double>(std::min(rows, columns));
}

// ---- Hermitian matrices -------------------------------------------------------------------------

eigh_result hermitian(const expr& a, const char* function, triangle part, lapack::vectors wanted) {
  const lapack::part stored = as_part(part);
  require_square(a.shape(), function);
  const held_matrices matrices(a, function);
  executor& on = parallel::begin_call();
  const dtype type = matrices.compute;
  const bool with_vectors = wanted != lapack::vectors::none;
  const index_t n = a.shape(-1);
  const tensor values =
      tensor::empty(with_vector(matrices.batch(), n), real_dtype(type), &on.pool());
  const tensor vectors =
      tensor::empty(with_matrix(matrices.batch(), n, with_vectors ? n : 0), type, &on.pool());
  const matrix_batch from(matrices.elements), to(vectors);
  visit(type, lapack::types{}, [&]<class T>(std::type_identity<T>) {
    using R = lapack::real_of<T>;
    work_parts parts;
    const std::size_t elements = parts.add<T>(n * n);
    const iteration_memory<T> iteration(lapack::eigh_work<T>(wanted, from.rows()), parts);
    R* const to_values = reinterpret_cast<R*>(values.data());
    const batch_work work{from.count(), parts.bytes(), work_of(from.rows(), from.rows(), 10),
                          matrices.bytes()};
    const auto failed = for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
      if (n == 0) return integer{0};
      T* const matrix = part_at<T>(memory, elements);
      from.load(number, matrix);
      if (!triangle_is_finite(stored, from.rows(), matrix)) return not_finite;
      const integer info = lapack::eigh(wanted, stored, from.rows(), matrix, to_values + number * n,
                                        iteration.at(memory));
      if (info == 0 && with_vectors) to.store(number, matrix);
      return info;
    });
    require_success(failed, matrices);
  });
  return {for_all(values, real_dtype(matrices.result), matrices, 1, on),
          with_vectors ? for_all(vectors, matrices.result, matrices, 2, on) : vectors};
}

// ---- any square matrices ------------------------------------------------------------------------

/// The complex dtype of results, for matrices of `type`.
dtype complex_dtype(dtype type) {
  return type == dtype::float64 || type == dtype::complex128 ? dtype::complex128 : dtype::complex64;
}

/// Makes complex vectors from those that LAPACK stores for real matrices. For a pair of conjugate
/// eigenvalues, one column has the real parts and the next one the imaginary parts.
template <class R>
void join_pairs(integer n, const R* imaginary, const R* columns, std::complex<R>* vectors) {
  for (index_t j = 0; j < n; ++j) {
    const bool pair = imaginary[j] != 0 && j + 1 < n;
    for (index_t i = 0; i < n; ++i) {
      const R real_part = columns[j * n + i];
      if (!pair) {
        vectors[j * n + i] = real_part;
        continue;
      }
      const R imaginary_part = columns[(j + 1) * n + i];
      vectors[j * n + i] = {real_part, imaginary_part};
      vectors[(j + 1) * n + i] = {real_part, -imaginary_part};
    }
    if (pair) ++j;
  }
}

template <class T>
struct general_memory {
  using C = std::complex<lapack::real_of<T>>;

  work_parts parts;
  std::size_t elements, values, imaginary, columns, joined;
  iteration_memory<T> iteration;

  general_memory(lapack::vectors wanted, integer n)
      : elements(parts.add<T>(index_t{n} * n)),
        values(parts.add<T>(n)),
        imaginary(parts.add<lapack::real_of<T>>(n)),
        columns(parts.add<T>(wanted == lapack::vectors::none ? 1 : index_t{n} * n)),
        joined(parts.add<C>(wanted == lapack::vectors::none ? 1 : index_t{n} * n)),
        iteration(lapack::eig_work<T>(wanted, n), parts) {}
};

eig_result general(const expr& a, const char* function, lapack::vectors wanted) {
  require_square(a.shape(), function);
  const held_matrices matrices(a, function);
  executor& on = parallel::begin_call();
  const dtype type = complex_dtype(matrices.compute);
  const bool with_vectors = wanted != lapack::vectors::none;
  const index_t n = a.shape(-1);
  const tensor values = tensor::empty(with_vector(matrices.batch(), n), type, &on.pool());
  const tensor vectors =
      tensor::empty(with_matrix(matrices.batch(), n, with_vectors ? n : 0), type, &on.pool());
  const matrix_batch from(matrices.elements), to(vectors);
  visit(matrices.compute, lapack::types{}, [&]<class T>(std::type_identity<T>) {
    using R = lapack::real_of<T>;
    using C = std::complex<R>;
    const general_memory<T> room(wanted, from.rows());
    C* const to_values = reinterpret_cast<C*>(values.data());
    const batch_work work{from.count(), room.parts.bytes(), work_of(from.rows(), from.rows(), 25),
                          matrices.bytes()};
    const auto failed = for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
      if (n == 0) return integer{0};
      T* const matrix = part_at<T>(memory, room.elements);
      T* const found = part_at<T>(memory, room.values);
      R* const imaginary = part_at<R>(memory, room.imaginary);
      T* const columns = part_at<T>(memory, room.columns);
      from.load(number, matrix);
      if (!all_finite(matrix, n * n)) return not_finite;
      const integer info = lapack::eig(wanted, from.rows(), matrix, found, imaginary, columns,
                                       room.iteration.at(memory));
      if (info != 0) return info;
      for (index_t i = 0; i < n; ++i) {
        if constexpr (lapack::is_complex<T>) to_values[number * n + i] = found[i];
        else to_values[number * n + i] = {found[i], imaginary[i]};
      }
      if (!with_vectors) return integer{0};
      if constexpr (lapack::is_complex<T>) {
        to.store(number, columns);
      } else {
        C* const joined = part_at<C>(memory, room.joined);
        join_pairs(from.rows(), imaginary, columns, joined);
        to.store(number, joined);
      }
      return integer{0};
    });
    require_success(failed, matrices);
  });
  return {for_all(values, type, matrices, 1, on),
          with_vectors ? for_all(vectors, type, matrices, 2, on) : vectors};
}

// ---- singular values ----------------------------------------------------------------------------

/// Stores the n x n identity, column-major.
template <class T>
void set_identity(T* matrix, index_t n) {
  std::fill_n(matrix, n * n, T(0));
  for (index_t i = 0; i < n; ++i) matrix[i * n + i] = 1;
}

/// The shapes of a decomposition.
struct svd_extents {
  lapack::vectors wanted;
  index_t rows, columns, value_count, u_columns, vh_rows;

  svd_extents(const dims& shape, lapack::vectors kind)
      : wanted(kind),
        rows(shape[shape.size() - 2]),
        columns(shape.back()),
        value_count(std::min(rows, columns)),
        u_columns(kind == lapack::vectors::full ? rows : value_count),
        vh_rows(kind == lapack::vectors::full ? columns : value_count) {}

  bool with_vectors() const { return wanted != lapack::vectors::none; }
};

template <class T>
void decompose(const held_matrices& a, const svd_extents& shape, const svd_result& out,
               executor& on) {
  using R = lapack::real_of<T>;
  const matrix_batch from(a.elements), to_u(out.u), to_vh(out.vh);
  const bool with_vectors = shape.with_vectors();
  work_parts parts;
  const std::size_t elements = parts.add<T>(shape.rows * shape.columns),
                    u_at = parts.add<T>(with_vectors ? shape.rows * shape.u_columns : 1),
                    vh_at = parts.add<T>(with_vectors ? shape.vh_rows * shape.columns : 1);
  const iteration_memory<T> iteration(
      lapack::svd_work<T>(shape.wanted, from.rows(), from.columns()), parts);
  R* const values = reinterpret_cast<R*>(out.s.data());
  const batch_work work{from.count(), parts.bytes(),
                        work_of(from.rows(), from.columns(), with_vectors ? 20 : 4), a.bytes()};
  const auto failed = for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
    T* const u = part_at<T>(memory, u_at);
    T* const vh = part_at<T>(memory, vh_at);
    if (shape.value_count == 0) {
      // A matrix without elements has no singular values, but may have vectors on one side: those
      // of the identity.
      if (!with_vectors) return integer{0};
      set_identity(u, shape.u_columns);
      set_identity(vh, shape.vh_rows);
    } else {
      T* const matrix = part_at<T>(memory, elements);
      from.load(number, matrix);
      if (!all_finite(matrix, shape.rows * shape.columns)) return not_finite;
      const integer info =
          lapack::svd(shape.wanted, from.rows(), from.columns(), matrix,
                      values + number * shape.value_count, u, vh, iteration.at(memory));
      if (info != 0 || !with_vectors) return info;
    }
    to_u.store(number, u);
    to_vh.store(number, vh);
    return integer{0};
  });
  require_success(failed, a);
}

svd_result decomposed(const expr& a, const char* function, lapack::vectors wanted) {
  const held_matrices matrices(a, function);
  executor& on = parallel::begin_call();
  const svd_extents shape(a.shape(), wanted);
  const dtype type = matrices.compute;
  const dims batch = matrices.batch();
  const auto made = [&](index_t rows, index_t columns) {
    return tensor::empty(with_matrix(batch, rows, shape.with_vectors() ? columns : 0), type,
                         &on.pool());
  };
  const svd_result out{
      made(shape.rows, shape.u_columns),
      tensor::empty(with_vector(batch, shape.value_count), real_dtype(type), &on.pool()),
      made(shape.vh_rows, shape.columns)};
  visit(type, lapack::types{},
        [&]<class T>(std::type_identity<T>) { decompose<T>(matrices, shape, out, on); });
  const dtype result = matrices.result;
  const tensor s = for_all(out.s, real_dtype(result), matrices, 1, on);
  if (!shape.with_vectors()) return {out.u, s, out.vh};
  return {for_all(out.u, result, matrices, 2, on), s, for_all(out.vh, result, matrices, 2, on)};
}

}  // namespace

eigh_result eigh(const expr& a, triangle part) {
  return allocating([&] { return hermitian(a, "eigh", part, lapack::vectors::full); });
}

tensor eigvalsh(const expr& a, triangle part) {
  return allocating(
      [&] { return hermitian(a, "eigvalsh", part, lapack::vectors::none).eigenvalues; });
}

eig_result eig(const expr& a) {
  return allocating([&] { return general(a, "eig", lapack::vectors::full); });
}

tensor eigvals(const expr& a) {
  return allocating([&] { return general(a, "eigvals", lapack::vectors::none).eigenvalues; });
}

svd_result svd(const expr& a, svd_vectors vectors) {
  return allocating([&] {
    detail::require_enumerator(vectors, svd_vectors::reduced, "svd_vectors");
    return decomposed(
        a, "svd", vectors == svd_vectors::full ? lapack::vectors::full : lapack::vectors::reduced);
  });
}

tensor svdvals(const expr& a) {
  return allocating([&] { return decomposed(a, "svdvals", lapack::vectors::none).s; });
}

}  // namespace shale
