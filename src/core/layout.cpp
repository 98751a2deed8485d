#include "shale/layout.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "shale/error.hpp"

namespace shale {

namespace {

std::string text(index_t value) { return std::to_string(value); }

[[noreturn]] void throw_invalid(std::string_view message,
                                std::initializer_list<std::string> details) {
  throw error(errc::invalid_argument, message, details);
}

// Counts a negative index from the end; nothing unless -range <= index < range.
std::optional<index_t> wrapped(index_t index, index_t range) {
  if (index < -range || index >= range) return std::nullopt;
  return index < 0 ? index + range : index;
}

void require_extents(const dims& shape) {
  for (index_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] < 0)
      throw_invalid(
          "a shape has a negative extent",
          {"axis " + text(axis) + " of " + to_string(shape) + " is " + text(shape[axis])});
}

// The product of the extents, or nothing if it overflows. With an extent of 0 the product is 0 and
// never overflows.
std::optional<index_t> product(const dims& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  index_t count = 1;
  for (const index_t extent : shape) {
    const auto next = checked_mul(count, extent);
    if (!next) return std::nullopt;
    count = *next;
  }
  return count;
}

// The lowest and highest positions that an index can reach. Extents of 0 count as 1, so that no
// view of an empty layout can exceed the range of index_t.
std::optional<layout::bounds> reach(const dims& shape, const dims& strides, index_t offset) {
  layout::bounds result{offset, offset};
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] <= 1) continue;
    const auto span = checked_mul(shape[axis] - 1, strides[axis]);
    if (!span) return std::nullopt;
    index_t& end = *span < 0 ? result.first : result.last;
    const auto moved = checked_add(end, *span);
    if (!moved) return std::nullopt;
    end = *moved;
  }
  return result;
}

// The stride of an axis with at most one position. Such a stride is never used, so its overflow
// must not cause an error, neither here nor later when strides are scaled to bytes. A stride that
// would overflow becomes 1.
index_t stride_or_one(std::optional<index_t> wanted) {
  constexpr index_t limit = index_t{1} << 56;
  return wanted && *wanted > -limit && *wanted < limit ? *wanted : 1;
}

std::string axis_text(index_t axis, index_t extent) {
  return "axis " + text(axis) + " has " + text(extent) + " positions";
}

}  // namespace

index_t element_count(const dims& shape, index_t first, index_t last) {
  if (first < 0 || last > shape.size() || first > last)
    throw error(errc::invalid_argument, "a shape has no such axes",
                {"got axes " + std::to_string(first) + " to before " + std::to_string(last) +
                 " of shape " + to_string(shape)});
  dims part;
  for (index_t axis = first; axis < last; ++axis) part.push_back(shape[axis]);
  return element_count(part);
}

index_t element_count(const dims& shape) {
  require_extents(shape);
  const auto count = product(shape);
  if (!count)
    throw_invalid("a shape has too many elements",
                  {"got " + to_string(shape) + ", whose product is beyond 2^63 - 1"});
  return *count;
}

dims row_major_strides(const dims& shape) {
  require_extents(shape);
  dims strides = shape;
  index_t stride = 1;
  for (index_t axis = shape.size() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    const auto next = checked_mul(stride, std::max<index_t>(shape[axis], 1));
    if (!next)
      throw_invalid("a shape has too many elements",
                    {"got " + to_string(shape) + ", whose strides are beyond 2^63 - 1"});
    stride = *next;
  }
  return strides;
}

dims broadcast_shapes(const dims& a, const dims& b) {
  require_extents(a);
  require_extents(b);
  const dims& longer = a.size() >= b.size() ? a : b;
  const dims& shorter = a.size() >= b.size() ? b : a;
  dims result = longer;
  const index_t lead = longer.size() - shorter.size();
  for (index_t axis = 0; axis < shorter.size(); ++axis) {
    const index_t one = longer[lead + axis];
    const index_t other = shorter[axis];
    if (one != other && one != 1 && other != 1) {
      const index_t from_back = axis - shorter.size();
      throw_invalid("shapes do not broadcast",
                    {to_string(a) + " and " + to_string(b) + ": axis " + text(from_back) + " has " +
                         text(a[a.size() + from_back]) + " and " + text(b[b.size() + from_back]) +
                         " positions",
                     "aligned right, extents must be equal or one of them 1"});
    }
    result[lead + axis] = one == 1 ? other : one;
  }
  return result;
}

index_t normalize_axis(index_t axis, index_t rank) {
  if (const auto found = wrapped(axis, rank)) return *found;
  if (rank == 0)
    throw_invalid("axis out of range", {"got axis " + text(axis) + " of rank 0, which has none"});
  throw_invalid("axis out of range", {"got axis " + text(axis) + " of rank " + text(rank) +
                                      ", wanted " + text(-rank) + " to " + text(rank - 1)});
}

dims infer_shape(const dims& shape, index_t count) {
  index_t unknown = -1;
  dims known = shape;
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != -1) continue;
    if (unknown >= 0)
      throw_invalid("only one extent can be inferred",
                    {"got " + to_string(shape) + ", with -1 on axes " + text(unknown) + " and " +
                     text(axis)});
    unknown = axis;
    known[axis] = 1;
  }
  const index_t rest = element_count(known);
  if (unknown < 0) {
    if (rest != count)
      throw_invalid(
          "a shape does not fit the elements",
          {"got " + to_string(shape) + " with " + text(rest) + " elements, wanted " + text(count)});
    return known;
  }
  if (rest == 0)
    throw_invalid("-1 cannot be inferred if another extent is 0",
                  {"got " + to_string(shape) + ": any extent would fit; give it explicitly"});
  if (count % rest != 0)
    throw_invalid("a shape does not fit the elements",
                  {"got " + to_string(shape) + ", but " + text(count) +
                   " elements are not a multiple of " + text(rest)});
  known[unknown] = count / rest;
  return known;
}

layout::layout(const dims& shape, index_t offset)
    : layout(shape, row_major_strides(shape), offset) {}

layout::layout(const dims& shape, const dims& strides, index_t offset)
    : shape_(shape), strides_(strides), offset_(offset), size_(element_count(shape)) {
  if (shape.size() != strides.size())
    throw_invalid("shape and strides differ in rank",
                  {"got shape " + to_string(shape) + " and strides " + to_string(strides)});
  // Differences of positions must fit too, so that every stride between two positions can be
  // negated.
  const auto reached = reach(shape, strides, offset);
  if (!reached || !checked_sub(reached->last, reached->first))
    throw_invalid("an element's position does not fit 64 bits",
                  {"shape " + to_string(shape) + ", strides " + to_string(strides) + ", offset " +
                   text(offset)});
}

bool layout::is_contiguous() const noexcept {
  if (empty()) return true;
  index_t expected = 1;
  for (index_t axis = rank() - 1; axis >= 0; --axis) {
    if (shape_[axis] == 1) continue;
    if (strides_[axis] != expected) return false;
    expected *= shape_[axis];
  }
  return true;
}

bool layout::is_broadcast() const noexcept {
  for (index_t axis = 0; axis < rank(); ++axis)
    if (shape_[axis] > 1 && strides_[axis] == 0) return true;
  return false;
}

std::optional<layout::bounds> layout::extent() const noexcept {
  if (empty()) return std::nullopt;
  return reach(shape_, strides_, offset_);
}

index_t layout::position(std::span<const index_t> index) const {
  if (static_cast<index_t>(index.size()) != rank())
    throw_invalid("an index has the wrong rank",
                  {"got " + text(static_cast<index_t>(index.size())) + " indices, wanted " +
                   text(rank()) + " for shape " + to_string(shape_)});
  index_t result = offset_;
  for (index_t axis = 0; axis < rank(); ++axis) {
    const auto position = wrapped(index[axis], shape_[axis]);
    if (!position)
      throw_invalid("index out of range",
                    {"got index " + text(index[axis]) + ", but " + axis_text(axis, shape_[axis])});
    result += *position * strides_[axis];
  }
  return result;
}

layout layout::narrow(index_t axis, index_t start, index_t length) const {
  axis = normalize_axis(axis, rank());
  const index_t extent = shape_[axis];
  const index_t first = start < 0 ? start + extent : start;
  if (first < 0 || first > extent || length < 0 || length > extent - first)
    throw_invalid("a range lies outside its axis",
                  {"got " + text(length) + " positions from " + text(start) + ", but " +
                   axis_text(axis, extent)});
  layout result = *this;
  result.shape_[axis] = length;
  if (length > 0) result.offset_ += first * strides_[axis];
  result.size_ = extent == 0 ? 0 : size_ / extent * length;
  return result;
}

layout layout::select(index_t axis, index_t index) const {
  axis = normalize_axis(axis, rank());
  const auto position = wrapped(index, shape_[axis]);
  if (!position)
    throw_invalid("index out of range",
                  {"got index " + text(index) + ", but " + axis_text(axis, shape_[axis])});
  layout result = *this;
  result.size_ /= shape_[axis];
  result.offset_ += *position * strides_[axis];
  result.shape_.erase(axis);
  result.strides_.erase(axis);
  return result;
}

layout layout::sliced(index_t axis, const slice& wanted) const {
  axis = normalize_axis(axis, rank());
  const index_t extent = shape_[axis];
  const slice_range range = resolve(wanted, extent);
  layout result = *this;
  result.shape_[axis] = range.length;
  result.offset_ += range.start * strides_[axis];
  result.strides_[axis] = range.length > 1 ? strides_[axis] * range.step
                                           : stride_or_one(checked_mul(strides_[axis], range.step));
  result.size_ = extent == 0 ? 0 : size_ / extent * range.length;
  return result;
}

layout layout::swapaxes(index_t axis_a, index_t axis_b) const {
  axis_a = normalize_axis(axis_a, rank());
  axis_b = normalize_axis(axis_b, rank());
  layout result = *this;
  std::swap(result.shape_[axis_a], result.shape_[axis_b]);
  std::swap(result.strides_[axis_a], result.strides_[axis_b]);
  return result;
}

layout layout::permute_dims(const dims& axes) const {
  if (axes.size() != rank())
    throw_invalid("a permutation has the wrong length",
                  {"got " + to_string(axes) + ", wanted each of " + text(rank()) + " axes once"});
  dims seen = dims::filled(rank(), 0);
  layout result = *this;
  for (index_t to = 0; to < rank(); ++to) {
    const index_t from = normalize_axis(axes[to], rank());
    if (seen[from]++ != 0)
      throw_invalid("a permutation repeats an axis",
                    {"got " + to_string(axes) + ", with axis " + text(from) + " twice"});
    result.shape_[to] = shape_[from];
    result.strides_[to] = strides_[from];
  }
  return result;
}

layout layout::moveaxis(index_t from, index_t to) const {
  from = normalize_axis(from, rank());
  to = normalize_axis(to, rank());
  layout result = *this;
  result.shape_.erase(from);
  result.strides_.erase(from);
  result.shape_.insert(to, shape_[from]);
  result.strides_.insert(to, strides_[from]);
  return result;
}

layout layout::squeeze() const {
  layout result = *this;
  for (index_t axis = rank() - 1; axis >= 0; --axis) {
    if (shape_[axis] != 1) continue;
    result.shape_.erase(axis);
    result.strides_.erase(axis);
  }
  return result;
}

layout layout::squeeze(index_t axis) const { return squeeze(dims{axis}); }

layout layout::squeeze(const dims& axes) const {
  dims dropped = dims::filled(rank(), 0);
  for (index_t axis : axes) {
    axis = normalize_axis(axis, rank());
    if (shape_[axis] != 1)
      throw_invalid("only an axis of length 1 can be squeezed",
                    {axis_text(axis, shape_[axis]) + " in shape " + to_string(shape_)});
    if (dropped[axis]++ != 0)
      throw_invalid("an axis cannot be squeezed twice in one call",
                    {"got " + to_string(axes) + ", with axis " + text(axis) + " twice"});
  }
  layout result = *this;
  for (index_t axis = rank() - 1; axis >= 0; --axis) {
    if (dropped[axis] == 0) continue;
    result.shape_.erase(axis);
    result.strides_.erase(axis);
  }
  return result;
}

layout layout::expand_dims(index_t axis) const {
  axis = normalize_axis(axis, rank() + 1);
  layout result = *this;
  result.shape_.insert(axis, 1);
  // The new axis gets the stride that a row-major tensor would have there.
  result.strides_.insert(
      axis, axis == rank()
                ? 1
                : stride_or_one(checked_mul(std::max<index_t>(shape_[axis], 1), strides_[axis])));
  return result;
}

layout layout::broadcast_to(const dims& shape) const {
  const index_t lead = shape.size() - rank();
  if (lead < 0)
    throw_invalid("an expansion cannot remove axes",
                  {"got " + to_string(shape) + ", wanted at least " + text(rank()) +
                   " axes for shape " + to_string(shape_)});
  dims extents = shape;
  dims strides = dims::filled(shape.size(), 0);
  for (index_t axis = 0; axis < lead; ++axis)
    if (shape[axis] == -1)
      throw_invalid("a new axis has no extent to keep",
                    {"got " + to_string(shape) + " from " + to_string(shape_) + ": axis " +
                     text(axis) + " is new and cannot be -1"});
  for (index_t axis = lead; axis < shape.size(); ++axis) {
    const index_t old_extent = shape_[axis - lead];
    if (shape[axis] == -1 || shape[axis] == old_extent) {
      extents[axis] = old_extent;
      strides[axis] = strides_[axis - lead];
    } else if (old_extent != 1) {
      throw_invalid(
          "only an axis of length 1 can be expanded",
          {"got " + to_string(shape) + " from " + to_string(shape_) + ": axis " + text(axis) +
           " would go from " + text(old_extent) + " to " + text(shape[axis])});
    }
  }
  return layout(extents, strides, offset_);
}

std::optional<layout> layout::view(const dims& wanted) const {
  const dims shape = infer_shape(wanted, size_);
  if (shape == shape_) return *this;
  if (empty()) return layout(shape, offset_);

  // Old axes are grouped, from right to left, into chunks that are contiguous in themselves:
  // `chunk` elements with stride `base`. The new axes, from right to left, use one chunk after the
  // other. `spent` is the number of elements of the present chunk that they have used. A new axis
  // must fit in one chunk, otherwise no strides can express the view. `old_axis` is the next old
  // axis that is in no chunk yet. Cost: O(old rank + new rank).
  index_t old_axis = rank() - 1;
  index_t chunk = 1, spent = 1, base = 1;
  const auto next_chunk = [&] {
    while (shape_[old_axis] == 1) --old_axis;  // elements are left, so a longer axis exists
    base = strides_[old_axis];
    chunk = shape_[old_axis--];
    spent = 1;
    for (; old_axis >= 0; --old_axis) {
      if (shape_[old_axis] == 1) continue;
      const auto dense = checked_mul(base, chunk);
      if (!dense || strides_[old_axis] != *dense) break;
      chunk *= shape_[old_axis];
    }
  };

  dims strides = shape;
  for (index_t axis = shape.size() - 1; axis >= 0; --axis) {
    if (shape[axis] > 1) {
      if (spent == chunk) next_chunk();
      if (shape[axis] > chunk / spent) return std::nullopt;
    }
    strides[axis] = shape[axis] > 1 ? base * spent : stride_or_one(checked_mul(base, spent));
    spent *= shape[axis];
  }
  return layout(shape, strides, offset_);
}

layout layout::unfold(index_t axis, index_t size, index_t step) const {
  axis = normalize_axis(axis, rank());
  if (size < 0 || size > shape_[axis])
    throw_invalid("a window does not fit its axis",
                  {"got a window of " + text(size) + ", but " + axis_text(axis, shape_[axis])});
  if (step <= 0)
    throw_invalid("the step between windows must be positive", {"got step " + text(step)});
  const auto windows = checked_add((shape_[axis] - size) / step, index_t{1});
  if (!windows)
    throw_invalid("there are more than 2^63 - 1 windows",
                  {"got windows of 0 at every position, but " + axis_text(axis, shape_[axis])});
  dims shape = shape_;
  dims strides = strides_;
  shape[axis] = *windows;
  // If windows have no elements, the last one may begin after the last position.
  strides[axis] = *windows > 1 && size > 0 ? strides_[axis] * step
                                           : stride_or_one(checked_mul(strides_[axis], step));
  shape.push_back(size);
  strides.push_back(strides_[axis]);
  return layout(shape, strides, offset_);
}

layout layout::diagonal(index_t offset, index_t axis_a, index_t axis_b) const {
  axis_a = normalize_axis(axis_a, rank());
  axis_b = normalize_axis(axis_b, rank());
  if (axis_a == axis_b)
    throw_invalid("a diagonal needs two different axes", {"got axis " + text(axis_a) + " twice"});
  const index_t rows = shape_[axis_a], columns = shape_[axis_b];
  const index_t skipped_rows = offset < 0 ? -std::max(offset, -rows) : 0;
  const index_t skipped_columns = offset > 0 ? std::min(offset, columns) : 0;
  const index_t length = std::min(rows - skipped_rows, columns - skipped_columns);

  layout result = *this;
  if (length > 0)
    result.offset_ += skipped_rows * strides_[axis_a] + skipped_columns * strides_[axis_b];
  for (const index_t axis : {std::max(axis_a, axis_b), std::min(axis_a, axis_b)}) {
    result.shape_.erase(axis);
    result.strides_.erase(axis);
  }
  result.shape_.push_back(length);
  result.strides_.push_back(length > 1
                                ? strides_[axis_a] + strides_[axis_b]
                                : stride_or_one(checked_add(strides_[axis_a], strides_[axis_b])));
  result.size_ = element_count(result.shape_);
  return result;
}

layout layout::flip(const dims& axes) const {
  layout result = *this;
  dims seen = dims::filled(rank(), 0);
  for (index_t axis : axes) {
    axis = normalize_axis(axis, rank());
    if (seen[axis]++ != 0)
      throw_invalid("an axis cannot be flipped twice in one call",
                    {"got " + to_string(axes) + ", with axis " + text(axis) + " twice"});
    result = result.sliced(axis, {.step = -1});
  }
  return result;
}

layout layout::flip() const {
  layout result = *this;
  for (index_t axis = 0; axis < rank(); ++axis) result = result.sliced(axis, {.step = -1});
  return result;
}

}  // namespace shale
