#include "shale/region.hpp"

#include "shale/error.hpp"

namespace shale {

std::string to_string(const region& part) {
  const auto as_lists = [&part] {
    return "start " + to_string(part.start) + ", shape " + to_string(part.shape);
  };
  if (part.start.size() != part.shape.size()) return as_lists();
  std::string text = "[";
  for (index_t axis = 0; axis < part.shape.size(); ++axis) {
    const auto stop = checked_add(part.start[axis], part.shape[axis]);
    if (!stop) return as_lists();
    if (axis > 0) text += ", ";
    text += std::to_string(part.start[axis]) + ":" + std::to_string(*stop);
  }
  return text + "]";
}

void require_inside(const region& part, const dims& shape) {
  if (part.start.size() != shape.size() || part.shape.size() != shape.size())
    throw error(errc::invalid_argument, "a region's rank is not the array's",
                {"the region has " + std::to_string(part.shape.size()) + " axes, the array " +
                     std::to_string(shape.size()),
                 to_string(part)});
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t start = part.start[axis];
    const index_t length = part.shape[axis];
    // start <= shape - length cannot wrap: 0 <= length <= shape is checked first.
    if (start < 0 || length < 0 || length > shape[axis] || start > shape[axis] - length)
      throw error(
          errc::invalid_argument, "a region lies outside the array",
          {"axis " + std::to_string(axis) + " has " + std::to_string(shape[axis]) +
           " positions, wanted " + std::to_string(length) + " from " + std::to_string(start)});
  }
}

}  // namespace shale
