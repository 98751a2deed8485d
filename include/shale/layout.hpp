// The layout of a tensor: shape, strides and offset, counted in elements. The rules of views are
// arithmetic on these numbers. A layout knows neither bytes nor storage.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "shale/dims.hpp"
#include "shale/slice.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The number of elements in a shape: the product of its extents, 1 for rank 0.
/// Throws   invalid_argument for a negative extent or a product beyond 2^63 - 1
index_t element_count(const dims& shape);

/// The product of the extents from axis `first` to before axis `last`. Neither may be negative.
/// Throws   invalid_argument as element_count(shape), and for axes that the shape does not have
index_t element_count(const dims& shape, index_t first, index_t last);

/// Row-major strides: the last is 1, and s[i] = s[i+1] * max(n[i+1], 1).
/// Throws   invalid_argument as element_count, and if the product without zero extents overflows
dims row_major_strides(const dims& shape);

/// The shape that `a` and `b` broadcast to. Axes are aligned at the right; two extents must be
/// equal, or one of them 1.
/// Throws   invalid_argument, naming both shapes and the axis
dims broadcast_shapes(const dims& a, const dims& b);

/// `axis` counted from the front. Negative values count from the back: -1 is the last axis.
/// Throws   invalid_argument unless -rank <= axis < rank
index_t normalize_axis(index_t axis, index_t rank);

/// `shape` with its -1, if it has one, replaced so that it has `count` elements.
/// Throws   invalid_argument if that is impossible: it has more than one -1, its other extents have
///          the product 0, or `count` is not a multiple of their product
dims infer_shape(const dims& shape, index_t count);

/// Shape, strides and offset. Strides may be 0 or negative; the offset is the position of the
/// element at index (0, …, 0). The functions for views return a new layout over the same elements.
/// Axes may be negative numbers, which count from the back.
/// Cost     O(rank), allocates nothing
/// Throws   invalid_argument from every function whose arguments do not fit, naming the axis, the
///          value that was given and the one that was wanted
/// Threads  a value
class layout {
 public:
  /// Rank 0: one element at offset 0.
  layout() = default;

  /// A row-major layout.
  explicit layout(const dims& shape, index_t offset = 0);

  /// A layout with any strides.
  /// Throws   invalid_argument if the ranks differ, an extent is negative or a position overflows
  layout(const dims& shape, const dims& strides, index_t offset);

  const dims& shape() const noexcept { return shape_; }

  /// Elements between neighbours along each axis: 0 if broadcast, negative if reversed.
  const dims& strides() const noexcept { return strides_; }

  /// The position of the element at index (0, …, 0), in elements from the start of the storage.
  index_t offset() const noexcept { return offset_; }

  /// The number of axes.
  index_t rank() const noexcept { return shape_.size(); }

  /// The number of indices. A broadcast element counts once for each index that names it.
  index_t size() const noexcept { return size_; }

  /// Whether an axis has length 0. Then the layout has no elements.
  bool empty() const noexcept { return size_ == 0; }

  /// Whether the elements lie in row-major order without gaps: the layout is empty, or each stride
  /// is the product of the extents to its right. Strides of axes of length 1 do not matter.
  bool is_contiguous() const noexcept;

  /// Whether an axis longer than 1 has stride 0.
  bool is_broadcast() const noexcept;

  /// The element positions from `first` to `last`, both included.
  struct bounds {
    index_t first;
    index_t last;
  };

  /// The lowest and the highest position of an element, or nothing if the layout is empty.
  std::optional<bounds> extent() const noexcept;

  /// The position of the element at `index`. Negative indices count from the back.
  /// Throws   invalid_argument for another rank, and for an index outside
  index_t position(std::span<const index_t> index) const;

  // ---- views -----------------------------------------------------------------------------------

  /// Keeps `length` positions of `axis`, beginning with `start`. The length may be 0, also at the
  /// end of the axis.
  layout narrow(index_t axis, index_t start, index_t length) const;

  /// Takes one position of `axis` and drops the axis. A negative `index` counts from the end.
  layout select(index_t axis, index_t index) const;

  /// Takes a slice of `axis`.
  layout sliced(index_t axis, const slice& range) const;

  /// Swaps two axes.
  layout swapaxes(index_t axis_a, index_t axis_b) const;

  /// Reorders the axes: axis i of the result is axis `axes[i]` of this layout. `axes` names every
  /// axis once.
  layout permute_dims(const dims& axes) const;

  /// Moves the axis `from` to position `to`. The other axes keep their order.
  layout moveaxis(index_t from, index_t to) const;

  /// Drops every axis of length 1.
  layout squeeze() const;

  /// Drops one axis, or several different ones, which must have length 1.
  layout squeeze(index_t axis) const;
  layout squeeze(const dims& axes) const;

  /// Inserts an axis of length 1 in front of `axis`. rank() inserts it at the end.
  layout expand_dims(index_t axis) const;

  /// Broadcasts to `shape`. Axes are aligned at the right; an axis of length 1 gets any length,
  /// with stride 0. An extent of -1 keeps the present one.
  layout broadcast_to(const dims& shape) const;

  /// The same elements in the same order under another shape, or nothing if that needs a copy. Old
  /// axes are grouped into maximal runs, each contiguous in itself; each new axis must lie in one
  /// run. One extent of `shape` may be -1 and is inferred.
  /// Source   PyTorch's rule for `Tensor.view`
  std::optional<layout> view(const dims& shape) const;

  /// Windows of `size` positions along `axis`, which begin `step` (> 0) positions apart. `axis`
  /// then counts windows, (n - size) / step + 1; a new last axis has the positions in a window.
  layout unfold(index_t axis, index_t size, index_t step) const;

  /// Replaces two axes by their diagonal, which becomes the last axis. With `offset` > 0 it is the
  /// diagonal `offset` positions above the main one, with `offset` < 0 the one `-offset` positions
  /// below it.
  layout diagonal(index_t offset = 0, index_t axis_a = 0, index_t axis_b = 1) const;

  /// Reverses the given axes.
  layout flip(const dims& axes) const;

  /// Reverses every axis.
  layout flip() const;

  /// Whether shapes, strides and offsets are equal. Strides of axes of length 1 count too, although
  /// they move no element.
  friend bool operator==(const layout& a, const layout& b) noexcept {
    return a.shape_ == b.shape_ && a.strides_ == b.strides_ && a.offset_ == b.offset_;
  }

 private:
  dims shape_;
  dims strides_;
  index_t offset_ = 0;
  index_t size_ = 1;
};

/// Whether two different indices name the same element. The answer is exact, except that it is true
/// if the search would exceed a limit of work.
/// Cost     O(rank log rank) if the axes nest, else a bounded search
bool self_overlaps(const layout& elements) noexcept;

/// Whether elements of `a` and `b` share a byte. Both layouts begin at one base address; their
/// elements are `a_bytes` and `b_bytes` wide. The answer is exact, except that it is true if the
/// search would exceed a limit of work.
/// Source   the bounded Diophantine problem of NumPy's `solve_may_share_memory`. This search
///          branches on the largest stride first and prunes by gcd and range
bool overlaps(const layout& a, std::size_t a_bytes, const layout& b, std::size_t b_bytes) noexcept;

}  // namespace shale
