// Lazy expressions over tensors and tile sources, evaluated block by block in the fewest passes.
//
//   tensor hypotenuse = eval(sqrt(a * a + b * b) - mean(c, {0}));
//
// Building an expression touches no element; `eval` of evaluate.hpp does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "shale/evaluate.hpp"
#include "shale/index_entry.hpp"
#include "shale/scalar.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace [[gnu::visibility("default")]] shale {

namespace detail {
struct node;  // src/ops/graph.hpp
}

/// A value to be computed: a leaf (tensor, tile source, number, range) or an operation on others.
/// dtype and shape are known at once, so mistakes throw where they are made.
/// Types    promoted as `promote` says; a number written in C++ adapts to the tensor it meets
///          unless its kind is higher (int tensor + 0.5 computes in float64 for 64- and 32-bit
///          integers, as integer tensor / integer tensor does)
/// Throws   invalid_argument from every function whose operands do not fit
/// Threads  immutable; copies share
/// Lifetime keeps its tensors and sources alive
class expr {
 public:
  /// A leaf: elements are read when the expression is evaluated, not before.
  expr(const tensor& values);
  expr(std::shared_ptr<const tile_source> source);

  /// A number of rank 0.
  expr(const scalar& value);
  template <class T>
  requires(std::is_arithmetic_v<T>) expr(T value) : expr(scalar(value)) {}
  template <class T>
  expr(const std::complex<T>& value) : expr(scalar(std::complex<double>(value))) {}

  /// Of the value, known without computing it.
  shale::dtype dtype() const noexcept;
  const dims& shape() const noexcept;
  index_t rank() const noexcept { return shape().size(); }
  index_t size() const;

  // ---- views: never a copy of an intermediate; rules in layout.hpp ----------------------------

  /// As the members of `layout` and `tensor` with these names: O(rank), axes also from the back.
  expr narrow(index_t axis, index_t start, index_t length) const;
  expr select(index_t axis, index_t index) const;
  expr sliced(index_t axis, const slice& which) const;
  expr index(std::span<const index_entry> entries) const;
  expr index(std::initializer_list<index_entry> entries) const {
    return index(std::span<const index_entry>(entries.begin(), entries.size()));
  }
  expr transpose(index_t axis_a, index_t axis_b) const;
  expr permute_dims(const dims& axes) const;
  expr unsqueeze(index_t axis) const;
  expr squeeze(index_t axis) const;
  expr squeeze() const;
  expr expand(const dims& shape) const;
  expr flip(const dims& axes) const;

  /// A view where every leaf allows it; else the value is computed once into memory first.
  expr reshape(const dims& shape) const;

  /// Private to the engine.
  explicit expr(std::shared_ptr<const detail::node> made) noexcept : node_(std::move(made)) {}
  const std::shared_ptr<const detail::node>& node() const noexcept { return node_; }

 private:
  std::shared_ptr<const detail::node> node_;
};

// ---- elementwise ------------------------------------------------------------------------------

/// Integers wrap. On bool, + is "or", * is "and", and - throws.
expr operator+(const expr& a, const expr& b);
expr operator-(const expr& a, const expr& b);
expr operator*(const expr& a, const expr& b);

/// True division: integers give float64.
expr operator/(const expr& a, const expr& b);

/// Remainder with the sign of the divisor, as Python's. Integers by zero give 0.
expr operator%(const expr& a, const expr& b);

/// The negative; unsigned integers wrap, bool throws.
expr operator-(const expr& a);

/// Compared in the promoted dtype; the result is bool. NaN is unequal to everything.
expr operator==(const expr& a, const expr& b);
expr operator!=(const expr& a, const expr& b);

/// Order in the promoted dtype; the result is bool. False with NaN; complex throws.
expr operator<(const expr& a, const expr& b);
expr operator<=(const expr& a, const expr& b);
expr operator>(const expr& a, const expr& b);
expr operator>=(const expr& a, const expr& b);

/// Bitwise on integers, logical on bool; other dtypes throw.
expr operator&(const expr& a, const expr& b);
expr operator|(const expr& a, const expr& b);
expr operator^(const expr& a, const expr& b);
expr operator~(const expr& a);

/// Quotient rounded towards minus infinity, in the promoted dtype. Integers by zero give 0.
expr floor_divide(const expr& a, const expr& b);

/// Integers wrap; a negative exponent gives 0 there, but for the bases 1 and -1.
expr pow(const expr& a, const expr& b);

/// The angle of the point (x, y), in [-pi, pi]; real, integers as in `sqrt`.
expr atan2(const expr& y, const expr& x);

/// sqrt(a^2 + b^2) where the squares would overflow or vanish too; real, integers as in `sqrt`.
expr hypot(const expr& a, const expr& b);

/// NaN if either is NaN.
expr minimum(const expr& a, const expr& b);
expr maximum(const expr& a, const expr& b);

expr abs(const expr& a);     ///< complex gives the magnitude, real
expr square(const expr& a);  ///< integers wrap

/// -1, 0 or 1; NaN for NaN; z / |z| for complex.
expr sign(const expr& a);

/// Integers compute in float64 (8- and 16-bit ones in float32); accuracy in docs/numerics.md.
expr sqrt(const expr& a);
expr exp(const expr& a);
expr log(const expr& a);
expr log2(const expr& a);
expr log10(const expr& a);
expr sin(const expr& a);
expr cos(const expr& a);
expr tan(const expr& a);
expr asin(const expr& a);
expr acos(const expr& a);
expr atan(const expr& a);
expr sinh(const expr& a);
expr cosh(const expr& a);
expr tanh(const expr& a);

/// On integers these change nothing.
expr floor(const expr& a);
expr ceil(const expr& a);
expr trunc(const expr& a);
expr round(const expr& a);  ///< ties to even

/// The result is bool; numbers of dtypes without NaN and infinity are all finite.
expr isnan(const expr& a);
expr isfinite(const expr& a);

/// Whether an element is zero; the result is bool.
expr logical_not(const expr& a);

/// min(max(a, low), high); NaN in `a` stays.
expr clamp(const expr& a, const expr& low, const expr& high);

/// `a` where `condition` (bool) holds, else `b`.
expr where(const expr& condition, const expr& a, const expr& b);

/// Converted by the rules of `convert`.
expr cast(const expr& a, dtype to);

// ---- made or rearranged ------------------------------------------------------------------------

// `arange` and `full` store nothing. What `tile`, `repeat` and `concat` rearrange is read where it
// lies if it is a tensor (in `concat`: of the common dtype); all else, values of tile sources too,
// is first computed into memory of the executor's pool, whole, and held until all that reads it is.
// Pages of mapped tensors that they read are not dropped behind the work.

/// Rank 1: start, start + step, … below stop (above, for negative steps).
/// Throws   invalid_argument for a step of 0, for NaN and for more than 2^63 - 1 elements
expr arange(scalar start, scalar stop, scalar step = 1, std::optional<dtype> type = std::nullopt);
expr arange(scalar stop);

/// One value everywhere. Without `type`, by the kind of the value: bool, int64 (uint64 where it
/// does not fit), float64 or complex128.
expr full(const dims& shape, const scalar& value, std::optional<dtype> type = std::nullopt);

/// `a` laid out `times[i]` times along axis i; missing axes are added in front.
expr tile(const expr& a, const dims& times);

/// Every position of `axis` `times` times in a row.
expr repeat(const expr& a, index_t times, index_t axis);

/// One after the other along `axis`; other extents equal, dtypes promoted.
expr concat(std::span<const expr> parts, index_t axis);

/// The matrix product, as `matmul` of linalg.hpp. Operands that are no tensors are first computed
/// into memory of the executor's pool, and so is the product: whole, and held until the evaluation
/// ends. Products in memory are computed one after the other, before what reads them.
expr matmul(const expr& a, const expr& b);

// ---- reductions -------------------------------------------------------------------------------

/// Which axes a reduction folds; absent: all of them.
using axes_option = std::optional<dims>;

/// Whether folded axes stay as length 1.
enum class keep_axes : bool { no, yes };

/// Integers and bool sum in 64 bits; floats are at least as accurate as pairwise summation. The
/// same bits for any number of threads.
expr sum(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no);
expr prod(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no);

/// Integers give float64.
expr mean(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no);

/// Divides by n - correction; NaN where that is <= 0.
expr var(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no,
         double correction = 0);
expr stddev(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no,
            double correction = 0);

/// NaN if any element is NaN. Throws invalid_argument for an empty axis. Not for complex.
expr min(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no);
expr max(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no);

/// Whether any element, or every one, is not zero (bool), and how many are not (int64).
expr any(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no);
expr all(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no);
expr count_nonzero(const expr& a, const axes_option& axes = {}, keep_axes keep = keep_axes::no);

}  // namespace shale
