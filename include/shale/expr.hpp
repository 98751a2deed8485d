// Lazy expressions over tensors and tile sources. They are evaluated block by block, in the fewest
// passes over memory.
//
//   tensor hypotenuse = eval(sqrt(a * a + b * b) - mean(c, dims{0}));
//
// Making an expression reads no element; `eval` in evaluate.hpp does. The functions that make
// expressions are in elementwise.hpp, creation.hpp, random.hpp, manipulation.hpp, take.hpp,
// reductions.hpp, rolling.hpp, scans.hpp, statistics.hpp, windows.hpp and linalg.hpp; functions.hpp
// includes them all. masks.hpp has masked_fill. Names are those of the array API standard.
// Throws   invalid_argument from every function (operands that do not fit, or that were moved
//          from), out_of_memory
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "shale/evaluate.hpp"
#include "shale/index_entry.hpp"
#include "shale/scalar.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

class tile_source;  // shale/tile_source.hpp

class expr;

namespace detail {
struct node;         // src/ops/graph/graph.hpp
struct node_access;  // the engine's way to the node of an expression
}  // namespace detail

/// One entry of `expr::index`: an entry of basic indexing, or an array of indices or of bools.
class expr_index_entry {
 public:
  /// Entries are written as they are: `x.index({rows, slice{}, -1})`.
  template <class Integer>
  requires std::is_integral_v<Integer> expr_index_entry(Integer position)
  noexcept : basic_(position) {}
  expr_index_entry(const shale::slice& range) noexcept : basic_(range) {}
  expr_index_entry(newaxis_t) noexcept : basic_(newaxis) {}
  expr_index_entry(ellipsis_t) noexcept : basic_(ellipsis) {}
  expr_index_entry(const index_entry& basic) noexcept : basic_(basic) {}
  expr_index_entry(const tensor& array);
  expr_index_entry(const expr& array);

  /// Whether the entry is an array. Then `array()` may be called, and otherwise `basic()`.
  bool is_array() const noexcept { return array_ != nullptr; }
  const index_entry& basic() const noexcept { return basic_; }  ///< of an entry that is no array
  expr array() const;                                           ///< of an entry that is an array

 private:
  index_entry basic_;
  std::shared_ptr<const detail::node> array_;
};

/// A value to be computed: a leaf (tensor, tile source, number, range) or an operation on other
/// expressions. Its dtype and shape are known at once, so operands that do not fit throw here.
/// Types    dtypes are promoted as by `promote`. A number adapts to the dtype of the tensor, unless
///          the number's kind is higher: a tensor of 32- or 64-bit integers + 0.5 computes in
///          float64. An integer that the dtype of an integer tensor cannot hold throws
///          invalid_argument; comparisons with it give what they give for its exact value
/// Cost     O(rank) for a leaf or an operation. A view copies the graph below it, up to 2,000
///          nodes; a larger graph is computed into memory first
/// Threads  an expression never changes. Copies share the graph
/// Lifetime keeps its tensors and sources alive
class expr {
 public:
  /// A leaf. Elements are read when the expression is evaluated, not before.
  expr(const tensor& values);
  expr(std::shared_ptr<const tile_source> source);

  /// A number, of rank 0.
  expr(const scalar& value);
  template <class T>
  requires(std::is_arithmetic_v<T>) expr(T value) : expr(scalar(value)) {}
  template <class T>
  expr(const std::complex<T>& value) : expr(scalar(std::complex<double>(value))) {}

  /// Properties of the value, which are known without computing it.
  shale::dtype dtype() const;
  const dims& shape() const;
  index_t shape(index_t axis) const;
  index_t rank() const { return shape().size(); }
  index_t size() const;

  // ---- views ------------------------------------------------------------------------------------

  /// These views have the rules of the members of `tensor` with the same names. They copy no
  /// intermediate value.
  expr narrow(index_t axis, index_t start, index_t length) const;
  expr select(index_t axis, index_t index) const;
  expr sliced(index_t axis, const slice& range) const;
  expr index(std::span<const index_entry> entries) const;
  expr swapaxes(index_t axis_a, index_t axis_b) const;
  expr permute_dims(const dims& axes) const;
  expr moveaxis(index_t from, index_t to) const;
  expr expand_dims(index_t axis) const;
  expr squeeze(index_t axis) const;
  expr squeeze(const dims& axes) const;
  expr squeeze() const;
  expr broadcast_to(const dims& shape) const;
  expr flip(const dims& axes) const;
  expr flip() const;

  /// These are views if the layout of every leaf allows it. Otherwise the whole value is first
  /// computed into memory of the executor's pool, and held until all its readers are computed.
  expr reshape(const dims& shape) const;
  expr ravel() const { return reshape({-1}); }
  expr unfold(index_t axis, index_t size, index_t step) const;
  expr diagonal(index_t offset = 0, index_t axis_a = 0, index_t axis_b = 1) const;

  /// As `reshape`, but only as a view of every leaf.
  /// Throws   invalid_argument if that is impossible
  expr view(const dims& shape) const;

  /// NumPy's indexing. Without arrays, this is a view, as above. An array of integers gives the
  /// positions along its axis, negative ones from the end. Several arrays are broadcast against
  /// each other, and an integer beside them counts as an array of rank 0. An array of bools is a
  /// mask: it has the extents of the axes that it replaces, and stands for the arrays that
  /// `nonzero` returns for it.
  /// Shape    the axes that arrays and integers index are replaced by those of the broadcast
  ///          arrays: in the place of the first one if these entries are adjacent, in front of all
  ///          axes if a slice, `newaxis` or `ellipsis` separates them
  /// Cost     of integers: as `gather_nd` (take.hpp), after a view by the other entries. Masks are
  ///          evaluated at once, because their elements decide the shape. If a mask replaces all
  ///          axes, the result is that of `masked_select`, also at once
  /// Throws   invalid_argument (arrays of other dtypes, that do not broadcast, or masks of other
  ///          extents); with masks, as `nonzero`. An index out of range makes the evaluation throw
  ///          invalid_argument
  expr index(std::span<const expr_index_entry> entries) const;
  expr index(std::initializer_list<expr_index_entry> entries) const {
    return index(std::span<const expr_index_entry>(entries.begin(), entries.size()));
  }
  expr operator[](std::initializer_list<expr_index_entry> entries) const { return index(entries); }

 private:
  friend struct detail::node_access;
  explicit expr(std::shared_ptr<const detail::node> made) noexcept : node_(std::move(made)) {}

  std::shared_ptr<const detail::node> node_;
};

/// Integers wrap. For bool, + is "or", * is "and", and - throws invalid_argument.
expr operator+(const expr& a, const expr& b);
expr operator-(const expr& a, const expr& b);
expr operator*(const expr& a, const expr& b);

/// The true quotient. Integers give float64.
expr operator/(const expr& a, const expr& b);

/// The remainder with the sign of the divisor, as in Python. An integer divided by zero gives 0.
/// Not for complex.
expr operator%(const expr& a, const expr& b);

/// The negative value. Unsigned integers wrap; bool throws invalid_argument.
expr operator-(const expr& a);

/// Compares in the promoted dtype. The result is bool. NaN is unequal to everything.
expr operator==(const expr& a, const expr& b);
expr operator!=(const expr& a, const expr& b);

/// Compares the order in the promoted dtype. The result is bool, and false with NaN. Complex throws
/// invalid_argument.
expr operator<(const expr& a, const expr& b);
expr operator<=(const expr& a, const expr& b);
expr operator>(const expr& a, const expr& b);
expr operator>=(const expr& a, const expr& b);

/// Bitwise for integers, logical for bool. Other dtypes throw invalid_argument.
expr operator&(const expr& a, const expr& b);
expr operator|(const expr& a, const expr& b);
expr operator^(const expr& a, const expr& b);
expr operator~(const expr& a);

}  // namespace shale
