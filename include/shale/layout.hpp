// Where a tensor's elements lie: shape, strides and offset in elements, and the view rules, which
// are pure arithmetic on them. Knows neither bytes nor storage.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "shale/dims.hpp"
#include "shale/slice.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Elements in a shape: the product of its extents; 1 for rank 0.
/// Throws   invalid_argument for a negative extent or a product beyond 2^63 - 1
index_t element_count(const dims& shape);

/// Row-major strides: the last is 1, and s[i] = s[i+1] * max(n[i+1], 1).
/// Throws   invalid_argument as element_count, also when only a zero extent hides the overflow
dims row_major_strides(const dims& shape);

/// The shape that `a` and `b` broadcast to: aligned right, extents equal or one of them 1.
/// Throws   invalid_argument naming both shapes and the axis
dims broadcast_shapes(const dims& a, const dims& b);

/// `axis` counted from the front; negative values count from the back (-1 is the last).
/// Throws   invalid_argument unless -rank <= axis < rank
index_t normalize_axis(index_t axis, index_t rank);

/// `shape` with its one -1 (if any) replaced so that it has `count` elements.
/// Throws   invalid_argument if that is impossible: more than one -1, a rest of 0, no exact fit
dims infer_shape(const dims& shape, index_t count);

/// Shape, strides (elements, may be 0 or negative) and offset of the element at index (0, …, 0).
/// A plain value. Every function returns a new layout over the same elements; axes may be given
/// from the back as negative numbers.
/// Throws   invalid_argument from every function whose arguments do not fit, naming the axis, what
///          was got and what was wanted
class layout {
 public:
  /// Rank 0: one element at offset 0.
  layout() = default;

  /// Row-major over `shape`.
  explicit layout(const dims& shape, index_t offset = 0);

  /// Any strides. Throws invalid_argument when the ranks differ or an address overflows.
  layout(const dims& shape, const dims& strides, index_t offset);

  /// The extent of each axis.
  const dims& shape() const noexcept { return shape_; }

  /// Elements between neighbours along each axis; 0 where broadcast, negative where reversed.
  const dims& strides() const noexcept { return strides_; }

  /// The position of element (0, …, 0), in elements from the start of the storage.
  index_t offset() const noexcept { return offset_; }

  /// The number of axes.
  index_t rank() const noexcept { return shape_.size(); }

  /// The number of elements, counting broadcast ones each time they appear.
  index_t size() const noexcept { return size_; }

  /// Whether an axis has length 0: then no position is touched.
  bool empty() const noexcept { return size_ == 0; }

  /// Empty, or right to left, ignoring axes of length 1, every stride is the product so far.
  bool is_contiguous() const noexcept;

  /// Whether an axis longer than 1 has stride 0.
  bool is_broadcast() const noexcept;

  /// Element positions [first, last], both included.
  struct bounds {
    index_t first;
    index_t last;
  };

  /// The lowest and highest element positions touched; nothing if empty.
  std::optional<bounds> extent() const noexcept;

  /// The position of the element at `index`.
  /// Throws   invalid_argument for the wrong rank or an index outside (negative ones count from
  ///          the back)
  index_t position(std::span<const index_t> index) const;

  // ---- views -----------------------------------------------------------------------------------

  /// `length` positions of `axis` from `start`; may be empty, also at the very end.
  layout narrow(index_t axis, index_t start, index_t length) const;

  /// One position of `axis`, which disappears; a negative `index` counts from the end.
  layout select(index_t axis, index_t index) const;

  /// Python's slice of one axis; any step but 0.
  layout sliced(index_t axis, const slice& which) const;

  /// Swaps two axes.
  layout transpose(index_t axis_a, index_t axis_b) const;

  /// Axis i of the result is axis `axes[i]` of this one; every axis exactly once.
  layout permute_dims(const dims& axes) const;

  /// Moves one axis to position `to`; the others keep their order.
  layout moveaxis(index_t from, index_t to) const;

  /// Drops every axis of length 1.
  layout squeeze() const;

  /// Drops `axis`, which must have length 1.
  layout squeeze(index_t axis) const;

  /// Inserts an axis of length 1 before `axis` (up to and including rank()).
  layout unsqueeze(index_t axis) const;

  /// Broadcasts to `shape`, aligned right: length 1 becomes n with stride 0; -1 keeps an extent.
  layout expand(const dims& shape) const;

  /// The same elements in the same order under another shape, if strides can say it: old axes fall
  /// into maximal chunks that are contiguous in themselves, and each new axis must fit in one
  /// chunk. One -1 is inferred. Nothing if only a copy could do it. Source   PyTorch's rule for
  /// `Tensor.view`
  std::optional<layout> view(const dims& shape) const;

  /// Windows of `size` along `axis`, `step` (> 0) apart, as a new last axis: the axis keeps
  /// (n - size) / step + 1 positions.
  layout unfold(index_t axis, index_t size, index_t step) const;

  /// The diagonal of two axes as a new last axis; `offset` > 0 lies above it.
  layout diagonal(index_t offset = 0, index_t axis_a = 0, index_t axis_b = 1) const;

  /// Reverses each of `axes`.
  layout flip(const dims& axes) const;

  /// Reverses every axis.
  layout flip() const;

  /// Equal shapes, strides and offsets: also the strides of axes of length 1, which no element
  /// tells apart.
  friend bool operator==(const layout& a, const layout& b) noexcept {
    return a.shape_ == b.shape_ && a.strides_ == b.strides_ && a.offset_ == b.offset_;
  }

 private:
  dims shape_;
  dims strides_;
  index_t offset_ = 0;
  index_t size_ = 1;
};

/// Whether two different indices of `which` name the same element. Exact, except that beyond a work
/// cap it answers true.
/// Cost     O(rank log rank) where the axes nest, else a bounded search
bool self_overlaps(const layout& which) noexcept;

/// Whether elements of `a` and `b`, whose items are `a_bytes` and `b_bytes` wide at the same base
/// address, share a byte. Exact, except that beyond a work cap it answers true.
/// Source   the bounded Diophantine problem of NumPy's `solve_may_share_memory`; ours branches on
///          the largest stride first and prunes by gcd and range
bool overlaps(const layout& a, std::size_t a_bytes, const layout& b, std::size_t b_bytes) noexcept;

}  // namespace shale
