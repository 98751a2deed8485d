// Operands and results of the functions that LAPACK computes: dtypes, shapes, elements in memory.
#pragma once

#include <optional>
#include <string>

#include "core/grid.hpp"
#include "core/widened.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/operands/bytes_read_once.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"

namespace shale::ops {

/// The dtype of results for an operand of dtype `type`. Integers and bool count as float64.
/// Throws   invalid_argument (float8)
inline dtype matrix_dtype(dtype type, const char* function) {
  if (!computes(type))
    throw error(errc::invalid_argument, std::string(function) + " does not compute in float8",
                {"got " + std::string(name(type)), "cast to float16 or wider first"});
  return is_inexact(type) ? type : dtype::float64;
}

/// The dtype of magnitudes of `type`.
inline dtype real_dtype(dtype type) noexcept {
  return type == dtype::complex64    ? dtype::float32
         : type == dtype::complex128 ? dtype::float64
                                     : type;
}

/// Throws   invalid_argument (fewer than two axes)
inline void require_matrices(const dims& shape, const char* function) {
  if (shape.size() < 2)
    throw error(errc::invalid_argument, std::string(function) + " needs at least two axes",
                {"got shape " + to_string(shape)});
}

/// Throws   invalid_argument (other than two axes)
inline void require_one_matrix(const dims& shape, const char* function) {
  if (shape.size() != 2)
    throw error(errc::invalid_argument, std::string(function) + " needs one matrix: two axes",
                {"got shape " + to_string(shape)});
}

/// Throws   invalid_argument (fewer than two axes, or the last two differ)
inline void require_square(const dims& shape, const char* function) {
  require_matrices(shape, function);
  if (shape[shape.size() - 2] != shape.back())
    throw error(errc::invalid_argument, std::string(function) + " needs square matrices",
                {"got shape " + to_string(shape)});
}

/// Throws   invalid_argument (a tolerance that is negative or NaN)
inline void require_tolerance(const std::optional<double>& tolerance, const char* function) {
  if (tolerance && !(*tolerance >= 0))
    throw error(errc::invalid_argument, std::string(function) + " needs a tolerance of 0 or more",
                {"got " + std::to_string(*tolerance)});
}

/// An operand whose matrices LAPACK reads.
struct held_matrices {
  tensor elements;  ///< in memory; a broadcast axis of the batch has length 1
  dims shape;       ///< the shape of the operand, with broadcast axes in full
  dtype result;     ///< the dtype of results
  dtype compute;    ///< the dtype of LAPACK
  const char* function;

  /// Throws   invalid_argument (fewer than two axes, float8), and as `held_operand`
  held_matrices(const expr& value, const char* function_name)
      : shape(value.shape()),
        result(matrix_dtype(value.dtype(), function_name)),
        compute(detail::widened(result)),
        function(function_name) {
    require_matrices(shape, function);
    elements = held_operand(value);
    for (index_t axis = 0; axis < elements.rank() - 2; ++axis)
      if (elements.strides()[axis] == 0 && elements.shape()[axis] > 1)
        elements = elements.narrow(axis, 0, 1);
  }

  /// The axes in front of the matrices of `elements`.
  dims batch() const { return batch_of(elements.shape()); }

  std::uint64_t bytes() const { return parallel::distinct_bytes(elements); }

  /// Throws an error that names the matrix. `message` says what is wrong, `reason` why.
  [[noreturn]] void throw_about(const failed_matrix& failed, const std::string& message,
                                const std::string& reason) const {
    std::string place = "the matrix";
    if (shape.size() > 2)
      place = "matrix " + to_string(detail::unravel(failed.number, batch())) + " of the batch " +
              to_string(batch_of(shape));
    throw error(
        errc::invalid_argument, std::string(function) + ": " + message,
        {place + ", shape " + to_string(dims{shape[shape.size() - 2], shape.back()}), reason});
  }
};

/// A result that was computed in another dtype, rounded to its own.
inline tensor rounded(const tensor& computed, dtype type, executor& on) {
  parallel::state_of(on).count.written(computed.size_bytes());
  return computed.dtype() == type ? computed : eval(astype(expr(computed), type));
}

/// Results that were computed for the batch of `a.elements`, rounded to `type`, and repeated along
/// the broadcast axes of the operand's batch. The last `axes` axes are those of one matrix.
inline tensor for_all(const tensor& computed, dtype type, const held_matrices& a, index_t axes,
                      executor& on) {
  dims shape = batch_of(a.shape);
  for (index_t axis = -axes; axis < 0; ++axis) shape.push_back(computed.shape(axis));
  return rounded(computed, type, on).broadcast_to(shape).contiguous(&on.pool());
}

}  // namespace shale::ops
