#include "data/preview.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "shale/tensor.hpp"

namespace shale::tools {

namespace {

// The number of leading axes of which the printer shows only the first position: as many as are
// needed to show at most (2 * edge)^6 elements.
index_t leading_axes(const dims& shape, index_t edge) {
  const auto shown_max = static_cast<double>(2 * edge);
  double shown = 1;
  for (const index_t extent : shape) shown *= std::min(static_cast<double>(extent), shown_max);
  index_t axes = 0;
  for (; shown > std::pow(shown_max, 6) && axes < shape.size(); ++axes)
    shown /= std::min(static_cast<double>(shape[axes]), shown_max);
  return axes;
}

// The first position of each of the `leading` axes, and both ends of each longer axis after them.
// The slices are taken before they are joined, because slicing a join would compute all of it.
expr corners(const expr& values, index_t axis, index_t rank, index_t leading, index_t end) {
  if (axis == rank) return values;
  const index_t length = values.shape()[axis];
  if (axis < leading) return corners(values.narrow(axis, 0, 1), axis + 1, rank, leading, end);
  if (length <= 2 * end) return corners(values, axis + 1, rank, leading, end);
  const std::array ends{
      corners(values.narrow(axis, 0, end), axis + 1, rank, leading, end),
      corners(values.narrow(axis, length - end, end), axis + 1, rank, leading, end)};
  return concat(ends, axis);
}

}  // namespace

std::string preview(const expr& values, const print_options& options) {
  // The characters of texts are never cut.
  const dims elements =
      options.logical ? logical_shape(*options.logical, values.shape()) : values.shape();
  if (element_count(elements) <= options.threshold) return to_string(eval(values), options);
  const index_t leading = leading_axes(elements, options.edge_items);
  // One position more than the printer shows makes it print an ellipsis.
  const index_t end = options.edge_items + 1;
  dims extents = values.shape();
  for (index_t axis = 0; axis < elements.size(); ++axis)
    extents[axis] = std::min(extents[axis], 2 * end);
  print_options always_cut = options;
  always_cut.threshold = 0;
  // Broadcasting gives the leading axes their extents and takes no memory.
  const tensor shown =
      eval(corners(values, 0, elements.size(), leading, end)).broadcast_to(extents);
  const std::string text = to_string(shown, always_cut);
  const std::string type =
      options.logical ? name(*options.logical, values.shape()) : std::string(name(values.dtype()));
  return fmt::format("{}{} {}", text.substr(0, text.rfind('\n') + 1), type, to_string(elements));
}

}  // namespace shale::tools
