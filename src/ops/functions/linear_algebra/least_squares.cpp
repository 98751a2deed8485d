#include "shale/least_squares.hpp"

#include <algorithm>
#include <complex>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "core/allocating.hpp"
#include "core/widened.hpp"
#include "ops/functions/linear_algebra/matrix_operands.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "shale/error.hpp"
#include "shale/linalg.hpp"
#include "shale/reductions.hpp"
#include "shale/spectra.hpp"

namespace shale {

using namespace ops;
using detail::allocating;
using lapack::integer;
using lapack::integer_of;

namespace {

/// The tolerance that was given, or the default one.
double tolerance_of(const std::optional<double>& given, const dims& shape, dtype computed) {
  if (given) return *given;
  const bool is_single = real_dtype(computed) == dtype::float32;
  const double epsilon = is_single ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                   : std::numeric_limits<double>::epsilon();
  return static_cast<double>(std::max(shape[shape.size() - 2], shape.back())) * epsilon;
}

/// For each singular value, whether it counts as larger than zero. They are compared in float64, as
/// in apply_pseudo_inverse, so that a rank agrees with its solution.
expr counted(const tensor& values, double tolerance) {
  const expr wide = astype(values, dtype::float64);
  return wide > max(wide, {-1}, keepdims::yes) * tolerance;
}

tensor ranks_of(const tensor& values, double tolerance, executor& on) {
  const dims batch(values.shape().begin(), values.shape().end() - 1);
  if (values.size() == 0) {
    const tensor none = tensor::empty(batch, dtype::int64, &on.pool());
    if (none.size() > 0) eval_into(none, expr(0));
    return none;
  }
  return eval(astype(count_nonzero(counted(values, tolerance), {-1}), dtype::int64));
}

/// to = u^H
template <class T>
void store_adjoint(const T* u, index_t rows, index_t columns, T* to) {
  for (index_t row = 0; row < rows; ++row)
    for (index_t column = 0; column < columns; ++column) {
      const T element = u[column * rows + row];
      if constexpr (lapack::is_complex<T>) *to++ = std::conj(element);
      else *to++ = element;
    }
}

/// Divides each row by its singular value. Rows whose value counts as zero become zero.
template <class T>
void divide_rows(T* matrix, index_t columns, const lapack::real_of<T>* values, index_t value_count,
                 double tolerance) {
  const double limit = static_cast<double>(values[0]) * tolerance;  // as in `counted`
  for (index_t column = 0; column < columns; ++column)
    for (index_t i = 0; i < value_count; ++i) {
      T& element = matrix[column * value_count + i];
      element = static_cast<double>(values[i]) > limit ? element / values[i] : T(0);
    }
}

/// out = v s^+ u^H b, for every matrix of the batch of `out`. Without `b`, out = v s^+ u^H.
template <class T>
void apply_pseudo_inverse(const svd_result& factors, double tolerance,
                          const std::optional<tensor>& b, const tensor& out, executor& on) {
  using R = lapack::real_of<T>;
  const dims batch = batch_of(out.shape());
  const index_t m = factors.u.shape(-2), n = factors.vh.shape(-1), k = out.shape(-1),
                value_count = factors.s.shape(-1);
  const auto spread = [&](const tensor& values, index_t rows, index_t columns) {
    return matrix_batch(values.broadcast_to(with_matrix(batch, rows, columns)));
  };
  const matrix_batch u = spread(factors.u, m, value_count), vh = spread(factors.vh, value_count, n),
                     s = spread(factors.s.expand_dims(-1), value_count, 1), to(out);
  std::optional<matrix_batch> from;
  if (b) from = spread(*b, m, k);
  work_parts parts;
  const std::size_t u_at = parts.add<T>(m * value_count), vh_at = parts.add<T>(value_count * n),
                    s_at = parts.add<R>(value_count), b_at = parts.add<T>(b ? m * k : 0),
                    inner_at = parts.add<T>(value_count * k), x_at = parts.add<T>(n * k);
  const auto inner_rows = integer_of(value_count), columns = integer_of(k);
  const double each = static_cast<double>(value_count) * static_cast<double>(k);
  const batch_work work{to.count(), parts.bytes(), each * static_cast<double>(b ? m + n : n),
                        parallel::distinct_bytes(b ? *b : factors.u)};
  for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
    R* const values = part_at<R>(memory, s_at);
    T* const inner = part_at<T>(memory, inner_at);
    T* const x = part_at<T>(memory, x_at);
    std::fill_n(x, n * k, T(0));
    if (value_count > 0 && k > 0) {
      u.load(number, part_at<T>(memory, u_at));
      vh.load(number, part_at<T>(memory, vh_at));
      s.load(number, values);
      if (from) {
        from->load(number, part_at<T>(memory, b_at));
        lapack::gemm(lapack::operation::conjugate_transpose, lapack::operation::none, inner_rows,
                     columns, integer_of(m), part_at<T>(memory, u_at), part_at<T>(memory, b_at),
                     inner);
      } else {
        store_adjoint(part_at<T>(memory, u_at), m, value_count, inner);
      }
      divide_rows(inner, k, values, value_count, tolerance);
      lapack::gemm(lapack::operation::conjugate_transpose, lapack::operation::none, integer_of(n),
                   columns, inner_rows, part_at<T>(memory, vh_at), inner, x);
    }
    to.store(number, x);
    return integer{0};
  });
  if (b) b->storage().check();
}

/// The decomposition in the dtype of LAPACK, so that it is not rounded to float16 or bfloat16.
svd_result wide_svd(const expr& a, dtype computed) {
  return svd(astype(a, computed), svd_vectors::reduced);
}

/// The pseudo-inverses times `b`, or, without `b`, themselves.
tensor pseudo_inverse_times(const svd_result& factors, double tolerance,
                            const std::optional<tensor>& b, executor& on) {
  dims batch = batch_of(factors.u.shape());
  if (b) batch = broadcast_shapes(batch, batch_of(b->shape()));
  const index_t columns = b ? b->shape(-1) : factors.u.shape(-2);
  const tensor out = tensor::empty(with_matrix(batch, factors.vh.shape(-1), columns),
                                   factors.u.dtype(), &on.pool());
  visit(out.dtype(), lapack::types{}, [&]<class T>(std::type_identity<T>) {
    apply_pseudo_inverse<T>(factors, tolerance, b, out, on);
  });
  return out;
}

}  // namespace

lstsq_result lstsq(const expr& a, const expr& b, std::optional<double> tolerance) {
  return allocating([&] {
    require_tolerance(tolerance, "lstsq");
    require_matrices(a.shape(), "lstsq");
    const bool vector = b.rank() == 1;
    const dtype type = promote(matrix_dtype(a.dtype(), "lstsq"), matrix_dtype(b.dtype(), "lstsq"));
    if (b.rank() == 0 || (vector ? b.shape(0) : b.shape(-2)) != a.shape(-2))
      throw error(errc::invalid_argument,
                  "lstsq: the right-hand sides have another number of rows than the matrix",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape())});
    if (!vector) broadcast_shapes(batch_of(a.shape()), batch_of(b.shape()));
    executor& on = executor::current();
    const dtype computed = detail::widened(type);
    const double smallest = tolerance_of(tolerance, a.shape(), computed);
    const tensor matrices = held_operand(a);
    const tensor sides = held_operand(vector ? b.expand_dims(1) : b);
    const svd_result factors = wide_svd(matrices, computed);
    const tensor x = pseudo_inverse_times(factors, smallest, sides, on);
    const expr errors =
        abs(matmul(astype(expr(matrices), computed), expr(x)) - astype(expr(sides), computed));
    const dtype real_type = real_dtype(type);
    const tensor squares = eval(astype(sum(square(errors), {-2}), real_type));
    return lstsq_result{rounded(vector ? x.squeeze(-1) : x, type, on),
                        vector ? squares.squeeze(-1) : squares, ranks_of(factors.s, smallest, on),
                        rounded(factors.s, real_type, on)};
  });
}

tensor pinv(const expr& a, std::optional<double> tolerance) {
  return allocating([&] {
    require_tolerance(tolerance, "pinv");
    require_matrices(a.shape(), "pinv");
    const dtype type = matrix_dtype(a.dtype(), "pinv");
    executor& on = executor::current();
    const dtype computed = detail::widened(type);
    const double smallest = tolerance_of(tolerance, a.shape(), computed);
    const svd_result factors = wide_svd(a, computed);
    return rounded(pseudo_inverse_times(factors, smallest, std::nullopt, on), type, on);
  });
}

tensor matrix_rank(const expr& a, std::optional<double> tolerance) {
  return allocating([&] {
    require_tolerance(tolerance, "matrix_rank");
    require_matrices(a.shape(), "matrix_rank");
    const dtype computed = detail::widened(matrix_dtype(a.dtype(), "matrix_rank"));
    const double smallest = tolerance_of(tolerance, a.shape(), computed);
    return ranks_of(svdvals(astype(a, computed)), smallest, executor::current());
  });
}

tensor cond(const expr& a) {
  return allocating([&] {
    require_matrices(a.shape(), "cond");
    if (a.shape(-1) == 0 || a.shape(-2) == 0)
      throw error(errc::invalid_argument, "cond needs matrices with elements",
                  {"got shape " + to_string(a.shape())});
    const dtype type = matrix_dtype(a.dtype(), "cond");
    const tensor values = svdvals(astype(a, detail::widened(type)));
    const expr largest = expr(values).select(-1, 0), smallest = expr(values).select(-1, -1);
    const expr ratio =
        where(smallest == 0, expr(std::numeric_limits<double>::infinity()), largest / smallest);
    return eval(astype(ratio, real_dtype(type)));
  });
}

}  // namespace shale
