// Pads by reading the operand at other positions: each padded axis has an array of indices, and one
// leaf reads the elements at all of them. So a pad of several axes makes no copies between axes.
#include "shale/padding.hpp"

#include <string>
#include <utility>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "ops/leaves/indices.hpp"
#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;
using detail::position_of_axis;

namespace {

// The indices of an axis are held in memory, 8 bytes for each.
constexpr index_t extent_max = (index_t{1} << 60) - 1;

index_t padded_extent(index_t extent, const pad_width& width, index_t axis) {
  const auto longer = checked_add(extent, width.before);
  const auto total = longer ? checked_add(*longer, width.after) : std::nullopt;
  if (!total || *total > extent_max)
    throw error(
        errc::invalid_argument, "pad: an axis becomes too long",
        {std::to_string(extent) + " positions, " + std::to_string(width.before) + " before and " +
         std::to_string(width.after) + " after axis " + std::to_string(axis)});
  return *total;
}

// The positions of a padded axis, counted so that the operand's first position is 0: they begin at
// -before.
expr numbers_of(index_t extent, const pad_width& width) {
  return arange(scalar(-width.before), scalar(extent + width.after));
}

// For each position of the padded axis, the position of the operand whose element it has.
expr positions_of(index_t extent, const pad_width& width, pad_mode mode) {
  const expr number = numbers_of(extent, width);
  const index_t last = extent - 1;
  switch (mode) {
    case pad_mode::constant:
    case pad_mode::edge:
      break;
    case pad_mode::reflect:
      if (last > 0) return last - abs(number % (2 * last) - last);
      break;
    case pad_mode::symmetric: {
      const expr within = number % (2 * extent);
      return minimum(within, 2 * extent - 1 - within);
    }
    case pad_mode::wrap:
      return number % extent;
  }
  return clip(number, 0, last);
}

std::vector<pad_width> widths_of_axes(const expr& a, const std::vector<pad_width>& widths) {
  const auto rank = static_cast<std::size_t>(a.rank());
  for (std::size_t axis = 0; axis < widths.size(); ++axis)
    if (const auto [before, after] = widths[axis]; before < 0 || after < 0)
      throw error(errc::invalid_argument, "pad: a width is negative",
                  {"got " + std::to_string(before) + " before and " + std::to_string(after) +
                       " after axis " + std::to_string(axis),
                   "use narrow to remove positions"});
  if (widths.size() == rank) return widths;
  if (widths.size() == 1) return std::vector<pad_width>(rank, widths.front());
  throw error(errc::invalid_argument, "pad needs one width, or one for each axis",
              {"got " + std::to_string(widths.size()) + " for shape " + to_string(a.shape())});
}

expr padded(const expr& a, const std::vector<pad_width>& widths, const pad_options& options) {
  dims shape;
  std::vector<position_of_axis> axes;
  std::vector<expr> indices;
  expr inside(true);
  bool has_elements = true;
  for (index_t axis = 0; axis < a.rank(); ++axis) {
    const pad_width& width = widths[static_cast<std::size_t>(axis)];
    const index_t extent = a.shape(axis);
    shape.push_back(padded_extent(extent, width, axis));
    if (width.before == 0 && width.after == 0) {
      axes.push_back({.axis = axis});
      continue;
    }
    axes.push_back({.index = static_cast<index_t>(indices.size())});
    has_elements = has_elements && extent > 0;
    if (extent == 0 && options.mode != pad_mode::constant)
      throw error(errc::invalid_argument, "pad: an axis has no elements to repeat",
                  {"axis " + std::to_string(axis) + " of shape " + to_string(a.shape()),
                   "only mode constant can pad it"});
    const index_t behind = a.rank() - axis - 1;
    indices.push_back(with_axes_behind(positions_of(extent, width, options.mode), behind));
    const expr number = with_axes_behind(numbers_of(extent, width), behind);
    inside = inside & (number >= 0) & (number < extent);
  }
  element_count(shape);
  const bool fills = options.mode == pad_mode::constant;
  const expr value = full({}, fills ? options.value : 0, a.dtype());
  if (indices.empty()) return a;
  if (!fills) return indexed(a, shape, std::move(axes), indices);
  if (!has_elements) return full(shape, options.value, a.dtype());
  return where(inside, indexed(a, shape, std::move(axes), indices), value);
}

}  // namespace

expr pad(const expr& a, const std::vector<pad_width>& widths, const pad_options& options) {
  return allocating([&] {
    detail::require_enumerator(options.mode, pad_mode::wrap, "pad_mode");
    return padded(a, widths_of_axes(a, widths), options);
  });
}

}  // namespace shale
