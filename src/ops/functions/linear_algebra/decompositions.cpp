#include "shale/decompositions.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "core/widened.hpp"
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

// ---- parts of factors ---------------------------------------------------------------------------

// Results are row-major without gaps, so row i of a matrix begins at i * columns.

/// Makes the elements below the diagonal 0.
template <class T>
void keep_upper(T* matrix, index_t rows, index_t columns) {
  for (index_t i = 0; i < rows; ++i) std::fill_n(matrix + i * columns, std::min(i, columns), T(0));
}

/// Makes the elements above the diagonal 0, and those on it 1.
template <class T>
void keep_unit_lower(T* matrix, index_t rows, index_t columns) {
  for (index_t i = 0; i < std::min(rows, columns); ++i) {
    matrix[i * columns + i] = 1;
    std::fill(matrix + i * columns + i + 1, matrix + (i + 1) * columns, T(0));
  }
}

/// An operand in memory and its extents, with which all functions here begin.
struct factored_operand {
  held_matrices matrices;
  matrix_batch from;
  integer rows, columns, extent_min;

  factored_operand(const expr& a, const char* function)
      : matrices(a, function),
        from(matrices.elements),
        rows(from.rows()),
        columns(from.columns()),
        extent_min(std::min(rows, columns)) {}

  /// The multiplications for one matrix, roughly.
  double multiplications() const {
    return static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(extent_min);
  }

  batch_work work(const work_parts& parts) const {
    return {from.count(), parts.bytes(), multiplications(), matrices.bytes()};
  }

  tensor empty(const dims& shape, dtype type, executor& on) const {
    return tensor::empty(shape, type, &on.pool());
  }
};

// ---- LU -----------------------------------------------------------------------------------------

/// Leaves no matrix out: LAPACK factors matrices with NaN too.
constexpr auto none_left_out = [](const auto*, index_t) { return false; };

/// Stores the permutation that undoes exchanges of rows. Row i was exchanged with row
/// exchanged[i] - 1.
template <class R>
void store_permutation(R* matrix, index_t rows, const integer* exchanged, index_t count) {
  std::vector<index_t> source(static_cast<std::size_t>(rows));
  std::iota(source.begin(), source.end(), index_t{0});
  for (index_t i = 0; i < count; ++i)
    std::swap(source[static_cast<std::size_t>(i)],
              source[static_cast<std::size_t>(exchanged[i] - 1)]);
  std::fill_n(matrix, rows * rows, R(0));
  for (index_t i = 0; i < rows; ++i) matrix[source[static_cast<std::size_t>(i)] * rows + i] = 1;
}

// ---- QR -----------------------------------------------------------------------------------------

/// The work memory of a QR factorization, of which `q_columns` columns of q are computed.
template <class T>
struct qr_memory {
  work_parts parts;
  std::size_t elements, scales, work;
  index_t work_count;

  qr_memory(const factored_operand& a, index_t q_columns) {
    elements = parts.add<T>(a.rows * std::max<index_t>(a.columns, q_columns));
    scales = parts.add<T>(a.extent_min);
    work_count = a.extent_min == 0 ? 1 : lapack::geqrf_work<T>(a.rows, a.columns);
    if (a.rows > 0 && q_columns > 0)
      work_count = std::max(
          work_count, lapack::orgqr_work<T>(a.rows, static_cast<integer>(q_columns), a.extent_min));
    integer_of(work_count);
    work = parts.add<T>(work_count);
  }
};

/// Calls `take(number, factors, scales, work)` with the QR factors of every matrix: column-major.
template <class T, class Take>
void for_each_qr(const factored_operand& a, const qr_memory<T>& at, executor& on, Take take) {
  for_each_matrix(a.work(at.parts), on, [&](index_t number, std::byte* memory) {
    T* const matrix = part_at<T>(memory, at.elements);
    T* const scales = part_at<T>(memory, at.scales);
    T* const work = part_at<T>(memory, at.work);
    a.from.load(number, matrix);
    if (a.extent_min > 0)
      lapack::geqrf(a.rows, a.columns, matrix, scales, work, static_cast<integer>(at.work_count));
    take(number, matrix, scales, work);
    return integer{0};
  });
  a.matrices.elements.storage().check();
}

/// The extents of a product with q. The constructor checks that the operands fit each other.
struct q_extents {
  dims batch;
  index_t rows, columns;

  q_extents(const qr_factors& factors, const expr& c, q_side side) {
    const dims& packed = factors.packed.shape();
    require_matrices(packed, "apply_q");
    require_matrices(c.shape(), "apply_q");
    rows = c.shape(-2);
    columns = c.shape(-1);
    const index_t reflection_count = std::min(packed[packed.size() - 2], packed.back());
    if (factors.scales.shape() != with_vector(batch_of(packed), reflection_count))
      throw error(
          errc::invalid_argument, "apply_q: the scales are not those of the factors",
          {"got shapes " + to_string(packed) + " and " + to_string(factors.scales.shape())});
    const index_t meeting = side == q_side::left ? rows : columns;
    if (meeting != packed[packed.size() - 2])
      throw error(errc::invalid_argument, "apply_q: the operand does not have the extent of q",
                  {"got shape " + to_string(c.shape()) + ", and q has " +
                   std::to_string(packed[packed.size() - 2]) + " rows and columns"});
    batch = broadcast_shapes(batch_of(packed), batch_of(c.shape()));
  }
};

template <class T>
tensor q_applied(const held_matrices& packed, const tensor& scales, const tensor& c,
                 const q_extents& extents, lapack::operation op, lapack::side where, executor& on) {
  const index_t reflection_count = scales.shape(-1), q_rows = packed.elements.shape(-2);
  const auto rows = integer_of(extents.rows), columns = integer_of(extents.columns);
  const tensor out =
      tensor::empty(with_matrix(extents.batch, rows, columns), dtype_of<T>(), &on.pool());
  const auto spread = [&](const tensor& values, index_t m, index_t n) {
    return matrix_batch(values.broadcast_to(with_matrix(extents.batch, m, n)));
  };
  // The reflections are the first columns.
  const matrix_batch reflections =
      spread(packed.elements.narrow(-1, 0, reflection_count), q_rows, reflection_count);
  const matrix_batch factors = spread(scales.expand_dims(-1), reflection_count, 1);
  const matrix_batch from = spread(c, rows, columns), to(out);
  const bool empty = out.size() == 0 || reflection_count == 0;
  work_parts parts;
  const std::size_t q_at = parts.add<T>(q_rows * reflection_count),
                    scales_at = parts.add<T>(reflection_count),
                    c_at = parts.add<T>(extents.rows * extents.columns);
  const index_t work_count =
      empty ? 1
            : lapack::ormqr_work<T>(where, rows, columns, static_cast<integer>(reflection_count));
  const std::size_t work_at = parts.add<T>(work_count);
  const batch_work work{to.count(), parts.bytes(),
                        static_cast<double>(rows) * static_cast<double>(columns) *
                            static_cast<double>(reflection_count),
                        parallel::distinct_bytes(c) + packed.bytes()};
  for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
    T* const values = part_at<T>(memory, c_at);
    from.load(number, values);
    if (!empty) {
      reflections.load(number, part_at<T>(memory, q_at));
      factors.load(number, part_at<T>(memory, scales_at));
      lapack::ormqr(where, op, rows, columns, static_cast<integer>(reflection_count),
                    part_at<T>(memory, q_at), part_at<T>(memory, scales_at), values,
                    part_at<T>(memory, work_at), integer_of(work_count));
    }
    to.store(number, values);
    return integer{0};
  });
  return out;
}

}  // namespace

lu_result lu(const expr& a) {
  return allocating([&] {
    const factored_operand given(a, "lu");
    executor& on = parallel::begin_call();
    const dtype type = given.matrices.compute;
    const dims batch = given.matrices.batch();
    const index_t m = given.rows, n = given.columns, k = given.extent_min;
    const tensor p = given.empty(with_matrix(batch, m, m), real_dtype(type), on);
    const tensor l = given.empty(with_matrix(batch, m, k), type, on);
    const tensor u = given.empty(with_matrix(batch, k, n), type, on);
    const matrix_batch to_p(p), to_l(l), to_u(u);
    visit(type, lapack::types{}, [&]<class T>(std::type_identity<T>) {
      const auto store = [&](const lu_of_matrix<T>& factors) {
        const index_t number = factors.number;
        store_permutation(to_p.at<lapack::real_of<T>>(number), m, factors.pivots, k);
        to_l.store(number, factors.packed, m);
        keep_unit_lower(to_l.at<T>(number), m, k);
        to_u.store(number, factors.packed, m);
        keep_upper(to_u.at<T>(number), k, n);
      };
      for_each_lu<T>(given.matrices, on, given.multiplications(), none_left_out, store);
    });
    const dtype result = given.matrices.result;
    return lu_result{for_all(p, real_dtype(result), given.matrices, 2, on),
                     for_all(l, result, given.matrices, 2, on),
                     for_all(u, result, given.matrices, 2, on)};
  });
}

lu_factors lu_factor(const expr& a) {
  return allocating([&] {
    const factored_operand given(a, "lu_factor");
    executor& on = parallel::begin_call();
    const dims batch = given.matrices.batch();
    const index_t m = given.rows, n = given.columns, k = given.extent_min;
    const tensor packed = given.empty(with_matrix(batch, m, n), given.matrices.compute, on);
    const tensor pivots = given.empty(with_vector(batch, k), dtype::int64, on);
    const matrix_batch to(packed);
    auto* const to_pivots = reinterpret_cast<std::int64_t*>(pivots.data());
    visit(packed.dtype(), lapack::types{}, [&]<class T>(std::type_identity<T>) {
      const auto store = [&](const lu_of_matrix<T>& factors) {
        to.store(factors.number, factors.packed, m);
        for (index_t i = 0; i < k; ++i) to_pivots[factors.number * k + i] = factors.pivots[i] - 1;
      };
      for_each_lu<T>(given.matrices, on, given.multiplications(), none_left_out, store);
    });
    return lu_factors{for_all(packed, given.matrices.result, given.matrices, 2, on),
                      for_all(pivots, dtype::int64, given.matrices, 1, on)};
  });
}

tensor lu_solve(const lu_factors& factors, const expr& b) {
  return allocating([&] {
    const dims& shape = factors.packed.shape();
    require_square(shape, "lu_solve");
    const integer n = integer_of(shape.back());
    if (factors.pivots.shape() != with_vector(batch_of(shape), n))
      throw error(errc::invalid_argument, "lu_solve: the pivots are not those of the factors",
                  {"got shapes " + to_string(shape) + " and " + to_string(factors.pivots.shape())});
    // Pivots become indices, so they are copied before they are checked.
    tensor exchanged = eval(astype(expr(factors.pivots), dtype::int64)).clone();
    auto* const first = reinterpret_cast<const std::int64_t*>(exchanged.data());
    const bool fit = std::all_of(first, first + exchanged.size(),
                                 [&](std::int64_t row) { return row >= 0 && row < n; });
    if (!fit)
      throw error(errc::invalid_argument, "lu_solve: a pivot is not a row of the matrix",
                  {"wanted 0 to " + std::to_string(n - 1)});
    const tensor pivots = eval(astype(expr(exchanged) + 1, dtype::int32)).expand_dims(-2);
    return solve_with(
        factors.packed, b, "lu_solve", 0.0,
        []<class T>(integer order, const T* matrix, integer*) {
          return first_zero_on_diagonal(order, matrix);
        },
        throw_zero_on_diagonal,
        []<class T>(integer order, const T* matrix, const integer* rows, integer k, T* x) {
          lapack::getrs(order, k, matrix, rows, x);
        },
        &pivots);
  });
}

qr_result qr(const expr& a, qr_columns columns) {
  return allocating([&] {
    detail::require_enumerator(columns, qr_columns::complete, "qr_columns");
    const factored_operand given(a, "qr");
    executor& on = parallel::begin_call();
    const dtype type = given.matrices.compute;
    const index_t m = given.rows, n = given.columns;
    const index_t k = columns == qr_columns::complete ? m : given.extent_min;
    const tensor q = given.empty(with_matrix(given.matrices.batch(), m, k), type, on);
    const tensor r = given.empty(with_matrix(given.matrices.batch(), k, n), type, on);
    const matrix_batch to_q(q), to_r(r);
    visit(type, lapack::types{}, [&]<class T>(std::type_identity<T>) {
      const qr_memory<T> memory(given, k);
      for_each_qr<T>(given, memory, on, [&](index_t number, T* factors, const T* scales, T* work) {
        to_r.store(number, factors, m);
        keep_upper(to_r.at<T>(number), k, n);
        if (m > 0 && k > 0)
          lapack::orgqr(given.rows, static_cast<integer>(k), given.extent_min, factors, scales,
                        work, static_cast<integer>(memory.work_count));
        to_q.store(number, factors, m);
      });
    });
    return qr_result{for_all(q, given.matrices.result, given.matrices, 2, on),
                     for_all(r, given.matrices.result, given.matrices, 2, on)};
  });
}

tensor qr_r(const expr& a) {
  return allocating([&] {
    const factored_operand given(a, "qr_r");
    executor& on = parallel::begin_call();
    const dims batch = given.matrices.batch();
    const tensor r = given.empty(with_matrix(batch, given.extent_min, given.columns),
                                 given.matrices.compute, on);
    const matrix_batch to(r);
    visit(r.dtype(), lapack::types{}, [&]<class T>(std::type_identity<T>) {
      const qr_memory<T> memory(given, 0);
      for_each_qr<T>(given, memory, on, [&](index_t number, const T* factors, const T*, T*) {
        to.store(number, factors, given.rows);
        keep_upper(to.at<T>(number), given.extent_min, given.columns);
      });
    });
    return for_all(r, given.matrices.result, given.matrices, 2, on);
  });
}

qr_factors qr_factor(const expr& a) {
  return allocating([&] {
    const factored_operand given(a, "qr_factor");
    executor& on = parallel::begin_call();
    const dims batch = given.matrices.batch();
    const dtype type = given.matrices.compute;
    const tensor packed = given.empty(with_matrix(batch, given.rows, given.columns), type, on);
    const tensor scales = given.empty(with_vector(batch, given.extent_min), type, on);
    const matrix_batch to(packed);
    visit(type, lapack::types{}, [&]<class T>(std::type_identity<T>) {
      const qr_memory<T> memory(given, 0);
      T* const to_scales = reinterpret_cast<T*>(scales.data());
      for_each_qr<T>(given, memory, on, [&](index_t number, const T* factors, const T* found, T*) {
        to.store(number, factors, given.rows);
        if (given.extent_min > 0)
          std::copy_n(found, given.extent_min, to_scales + number * given.extent_min);
      });
    });
    return qr_factors{for_all(packed, given.matrices.result, given.matrices, 2, on),
                      for_all(scales, given.matrices.result, given.matrices, 1, on)};
  });
}

tensor apply_q(const qr_factors& factors, const expr& c, matrix_use use, q_side side) {
  return allocating([&] {
    detail::require_enumerator(use, matrix_use::conjugate_transposed, "matrix_use");
    detail::require_enumerator(side, q_side::right, "q_side");
    const q_extents extents(factors, c, side);
    const dtype type = promote(matrix_dtype(factors.packed.dtype(), "apply_q"),
                               matrix_dtype(c.dtype(), "apply_q"));
    const bool is_complex = kind(type) == dtype_kind::complex;
    if (is_complex && use == matrix_use::transposed)
      throw error(errc::invalid_argument, "apply_q cannot transpose complex q without conjugating",
                  {"use conjugate_transposed"});
    const held_matrices packed(factors.packed, "apply_q");
    const tensor scales = held_operand(factors.scales), elements = held_operand(c);
    executor& on = parallel::begin_call();
    const auto op = use == matrix_use::as_is ? lapack::operation::none
                    : is_complex             ? lapack::operation::conjugate_transpose
                                             : lapack::operation::transpose;
    const auto where = side == q_side::left ? lapack::side::left : lapack::side::right;
    const tensor out =
        visit(detail::widened(type), lapack::types{}, [&]<class T>(std::type_identity<T>) {
          return q_applied<T>(packed, scales, elements, extents, op, where, on);
        });
    for (const tensor* used : {&packed.elements, &scales, &elements}) used->storage().check();
    return rounded(out, type, on);
  });
}

pivoted_cholesky_result pivoted_cholesky(const expr& a, triangle part,
                                         std::optional<double> tolerance) {
  return allocating([&] {
    require_tolerance(tolerance, "pivoted_cholesky");
    const double limit = tolerance.value_or(-1);  // a negative one asks for LAPACK's default
    const lapack::part stored = as_part(part);
    require_square(a.shape(), "pivoted_cholesky");
    const factored_operand given(a, "pivoted_cholesky");
    executor& on = parallel::begin_call();
    const dims batch = given.matrices.batch();
    const integer n = given.rows;
    const tensor factor = given.empty(with_matrix(batch, n, n), given.matrices.compute, on);
    const tensor pivots = given.empty(with_vector(batch, n), dtype::int64, on);
    const tensor rank = given.empty(batch, dtype::int64, on);
    const matrix_batch to(factor);
    auto* const to_pivots = reinterpret_cast<std::int64_t*>(pivots.data());
    auto* const to_rank = reinterpret_cast<std::int64_t*>(rank.data());
    visit(factor.dtype(), lapack::types{}, [&]<class T>(std::type_identity<T>) {
      using R = lapack::real_of<T>;
      work_parts parts;
      const std::size_t elements = parts.add<T>(index_t{n} * n), order = parts.add<integer>(n),
                        work = parts.add<R>(2 * index_t{n});
      for_each_matrix(given.work(parts), on, [&](index_t number, std::byte* memory) {
        T* const matrix = part_at<T>(memory, elements);
        integer* const found = part_at<integer>(memory, order);
        given.from.load(number, matrix);
        std::iota(found, found + n, 1);
        const integer columns = n == 0
                                    ? 0
                                    : lapack::pstrf(stored, n, matrix, found, static_cast<R>(limit),
                                                    part_at<R>(memory, work));
        clear_outside(part, n, matrix);
        clear_behind(part, n, columns, matrix);
        to.store(number, matrix);
        for (index_t i = 0; i < n; ++i) to_pivots[number * n + i] = found[i] - 1;
        to_rank[number] = columns;
        return integer{0};
      });
    });
    given.matrices.elements.storage().check();
    return pivoted_cholesky_result{for_all(factor, given.matrices.result, given.matrices, 2, on),
                                   for_all(pivots, dtype::int64, given.matrices, 1, on),
                                   for_all(rank, dtype::int64, given.matrices, 0, on)};
  });
}

}  // namespace shale
