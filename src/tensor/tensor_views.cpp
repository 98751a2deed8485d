// Views of tensors: the members of `tensor` that share its storage.
#include "shale/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "core/allocating.hpp"
#include "shale/error.hpp"

namespace shale {

namespace {

// Reserves memory for `count` views, so that too large a number is refused before the first view is
// made.
std::vector<tensor> room_for(index_t count) {
  return detail::allocating([count] {
    std::vector<tensor> views;
    const auto refuse = [count] {
      throw error(errc::out_of_memory, "there is no memory for so many views",
                  {fmt::format("wanted {} of {} bytes", count, sizeof(tensor))});
    };
    if (static_cast<std::size_t>(count) > views.max_size()) refuse();
    try {
      views.reserve(static_cast<std::size_t>(count));
    } catch (const std::bad_alloc&) {
      refuse();
    }
    return views;
  });
}

}  // namespace

tensor tensor::with_layout(const shale::layout& geometry) const {
  tensor result = *this;
  result.layout_ = geometry;
  return result;
}

tensor tensor::narrow(index_t axis, index_t start, index_t length) const {
  return with_layout(layout_.narrow(axis, start, length));
}

tensor tensor::select(index_t axis, index_t index) const {
  return with_layout(layout_.select(axis, index));
}

tensor tensor::sliced(index_t axis, const shale::slice& range) const {
  return with_layout(layout_.sliced(axis, range));
}

tensor tensor::index(std::span<const index_entry> entries) const {
  using kind = index_entry_kind;
  index_t named = 0, ellipses = 0;
  for (const auto& entry : entries) {
    named += entry.kind() == kind::position || entry.kind() == kind::range;
    ellipses += entry.kind() == kind::ellipsis;
  }
  if (named > rank())
    throw error(
        errc::invalid_argument, "too many indices",
        {fmt::format("got {}, wanted at most {} for shape {}", named, rank(), to_string(shape()))});
  if (ellipses > 1)
    throw error(errc::invalid_argument, "only one ellipsis can stand in an index",
                {fmt::format("got {}: it would be unclear which axes each one covers", ellipses)});
  // New axes are inserted last. If they were inserted before other axes are dropped, the rank could
  // exceed its maximum for a while.
  shale::layout result = layout_;
  index_t axis = 0;
  dims new_axes;
  for (const auto& entry : entries) {
    switch (entry.kind()) {
      case kind::position:
        result = result.select(axis, entry.position());
        break;
      case kind::range:
        result = result.sliced(axis++, entry.slice());
        break;
      case kind::new_axis:
        new_axes.push_back(axis + new_axes.size());
        break;
      case kind::ellipsis:
        axis += rank() - named;
        break;
    }
  }
  for (const index_t added : new_axes) result = result.expand_dims(added);
  return with_layout(result);
}

tensor tensor::swapaxes(index_t axis_a, index_t axis_b) const {
  return with_layout(layout_.swapaxes(axis_a, axis_b));
}

tensor tensor::permute_dims(const dims& axes) const {
  return with_layout(layout_.permute_dims(axes));
}

tensor tensor::moveaxis(index_t from, index_t to) const {
  return with_layout(layout_.moveaxis(from, to));
}

tensor tensor::squeeze() const { return with_layout(layout_.squeeze()); }

tensor tensor::squeeze(index_t axis) const { return with_layout(layout_.squeeze(axis)); }

tensor tensor::squeeze(const dims& axes) const { return with_layout(layout_.squeeze(axes)); }

tensor tensor::expand_dims(index_t axis) const { return with_layout(layout_.expand_dims(axis)); }

tensor tensor::broadcast_to(const dims& shape) const {
  return with_layout(layout_.broadcast_to(shape));
}

tensor tensor::unfold(index_t axis, index_t size, index_t step) const {
  return with_layout(layout_.unfold(axis, size, step));
}

tensor tensor::diagonal(index_t offset, index_t axis_a, index_t axis_b) const {
  return with_layout(layout_.diagonal(offset, axis_a, axis_b));
}

tensor tensor::flip(const dims& axes) const { return with_layout(layout_.flip(axes)); }

tensor tensor::flip() const { return with_layout(layout_.flip()); }

tensor tensor::view(const dims& shape) const {
  const auto viewed = layout_.view(shape);
  if (!viewed)
    throw error(errc::invalid_argument, "strides cannot express the view",
                {fmt::format("got shape {} over shape {} with strides {}", to_string(shape),
                             to_string(this->shape()), to_string(strides())),
                 "use `reshape`, which copies if necessary"});
  return with_layout(*viewed);
}

tensor tensor::as_strided(const dims& shape, const dims& strides, index_t offset) const {
  return tensor(storage_, dtype_, shale::layout(shape, strides, offset));
}

tensor tensor::view_as(shale::dtype type) const {
  // Only the last axis may change its extent, so its elements must be adjacent. Offset, strides and
  // last extent are scaled by the ratio of the widths; for a wider dtype they must be multiples of
  // it.
  const auto old_width = static_cast<index_t>(item_bytes());
  const auto new_width = static_cast<index_t>(shale::item_bytes(type));
  if (old_width == new_width) return tensor(storage_, type, layout_);
  const auto refuse = [&](std::string_view reason) {
    throw error(
        errc::invalid_argument, fmt::format("{} cannot be viewed as {}", name(dtype_), name(type)),
        {std::string(reason), fmt::format("shape {}, strides {}, offset {}", to_string(shape()),
                                          to_string(strides()), offset())});
  };
  if (rank() == 0) refuse("rank 0 has no last axis to scale");
  const index_t last = rank() - 1;
  dims extents = shape(), steps = strides();
  if (extents[last] > 1 && steps[last] != 1) refuse("the last axis has gaps between its elements");
  steps[last] = 1;
  // Converts a number of old elements to new elements; nothing if the result is not whole.
  const auto scaled = [&](index_t count) -> std::optional<index_t> {
    if (old_width > new_width) return count * (old_width / new_width);
    if (count % (new_width / old_width) != 0) return std::nullopt;
    return count / (new_width / old_width);
  };
  const auto extent = scaled(extents[last]);
  if (!extent) refuse("the last axis is not a multiple of the wider dtype");
  extents[last] = *extent;
  for (index_t axis = 0; axis < last; ++axis) {
    const auto step = scaled(steps[axis]);
    if (!step && extents[axis] > 1) refuse("a stride is not a multiple of the wider dtype");
    steps[axis] = step.value_or(1);
  }
  const auto start = scaled(offset());
  if (!start && !layout_.empty()) refuse("the offset is not a multiple of the wider dtype");
  return tensor(storage_, type, shale::layout(extents, steps, start.value_or(0)));
}

tensor tensor::as_read_only() const {
  tensor result = *this;
  result.storage_ = storage_.as_read_only();
  return result;
}

// ---- pieces -------------------------------------------------------------------------------------

std::vector<tensor> tensor::split(index_t length, index_t axis) const {
  axis = normalize_axis(axis, rank());
  if (length <= 0)
    throw error(errc::invalid_argument, "pieces need a positive length",
                {fmt::format("got {}", length)});
  const index_t extent = shape()[axis];
  std::vector<tensor> pieces = room_for(std::max<index_t>(ceil_div(extent, length), 1));
  for (index_t start = 0; start < extent || pieces.empty(); start += length) {
    pieces.push_back(narrow(axis, start, std::min(length, extent - start)));
    if (length >= extent - start) break;  // the next start might overflow
  }
  return pieces;
}

std::vector<tensor> tensor::chunk(index_t count, index_t axis) const {
  axis = normalize_axis(axis, rank());
  if (count <= 0)
    throw error(errc::invalid_argument, "the number of pieces must be positive",
                {fmt::format("got {}", count)});
  return split(std::max<index_t>(ceil_div(shape()[axis], count), 1), axis);
}

std::vector<tensor> tensor::unstack(index_t axis) const {
  axis = normalize_axis(axis, rank());
  std::vector<tensor> pieces = room_for(shape()[axis]);
  for (index_t position = 0; position < shape()[axis]; ++position)
    pieces.push_back(select(axis, position));
  return pieces;
}

}  // namespace shale
