// Expressions that are made from numbers alone. They hold no elements in memory.
// Throws   invalid_argument (negative extents, more than 2^63 - 1 elements, a value that is no
//          dtype), out_of_memory
#pragma once

#include <optional>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The numbers start, start + step, … before stop. Of floats, there are ceil((stop - start) / step),
/// which is rounded as in NumPy: the last number may reach stop, or one may be missing.
/// Shape    (count); int64 if all three are integers, else float64; or `type`
/// Throws   invalid_argument for a step of 0, a NaN, complex numbers, integers beyond int64, and
///          too many elements (2^63 integers or 2^62 floats)
expr arange(scalar start, scalar stop, scalar step = 1, std::optional<dtype> type = std::nullopt);
expr arange(scalar stop);

/// `count` numbers from `start` to `stop`, evenly spaced: start + step * k, and the last one is
/// exactly `stop`. A single number is `start`. If stop - start is not finite, the numbers are those
/// of `lerp` instead. Between finite ends they are finite, however far the ends are apart.
/// Shape    (count); float64
/// Throws   invalid_argument also for a negative count
expr linspace(double start, double stop, index_t count = 50);

/// base to the power of the numbers of linspace(start, stop, count).
expr logspace(double start, double stop, index_t count = 50, double base = 10);

/// 1 on a diagonal, 0 elsewhere. Diagonal 0 begins at (0, 0), 1 at (0, 1), -1 at (1, 0).
/// Shape    (rows, columns); without `columns`, (rows, rows)
expr eye(index_t rows, std::optional<index_t> columns = std::nullopt, index_t diagonal = 0,
         dtype type = dtype::float64);

/// The matrices of the last two axes with 0 above (tril) or below (triu) a diagonal. Diagonals are
/// counted as by `eye`.
/// Throws   invalid_argument also for fewer than two axes
expr tril(const expr& a, index_t diagonal = 0);
expr triu(const expr& a, index_t diagonal = 0);

/// The same value in every element. Without `type`, the dtype follows from the kind of the value:
/// bool, int64 (uint64 if int64 cannot hold it), float64 or complex128.
/// Throws   invalid_argument (`type` cannot hold the value, see scalar::to; a negative extent)
expr full(const dims& shape, const scalar& value, std::optional<dtype> type = std::nullopt);
expr zeros(const dims& shape, dtype type = dtype::float64);
expr ones(const dims& shape, dtype type = dtype::float64);

/// The same with the shape of `a`, and with its dtype unless `type` is given.
expr full_like(const expr& a, const scalar& value, std::optional<dtype> type = std::nullopt);
expr zeros_like(const expr& a, std::optional<dtype> type = std::nullopt);
expr ones_like(const expr& a, std::optional<dtype> type = std::nullopt);

}  // namespace shale
