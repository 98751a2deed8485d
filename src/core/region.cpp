#include "shale/region.hpp"

#include "shale/error.hpp"

namespace shale {

std::string to_string(const region& where) {
  const auto as_lists = [&where] {
    return "start " + to_string(where.start) + ", shape " + to_string(where.shape);
  };
  if (where.start.size() != where.shape.size()) return as_lists();
  std::string text = "[";
  for (index_t axis = 0; axis < where.shape.size(); ++axis) {
    const auto stop = checked_add(where.start[axis], where.shape[axis]);
    if (!stop) return as_lists();
    if (axis > 0) text += ", ";
    text += std::to_string(where.start[axis]) + ":" + std::to_string(*stop);
  }
  return text + "]";
}

void require_inside(const region& where, const dims& shape) {
  if (where.start.size() != shape.size() || where.shape.size() != shape.size())
    throw error(errc::invalid_argument, "a region's rank is not the array's",
                {"the region has " + std::to_string(where.shape.size()) + " axes, the array " +
                     std::to_string(shape.size()),
                 to_string(where)});
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t start = where.start[axis];
    const index_t length = where.shape[axis];
    // start <= shape - length cannot wrap: 0 <= length <= shape is checked first.
    if (start < 0 || length < 0 || length > shape[axis] || start > shape[axis] - length)
      throw error(
          errc::invalid_argument, "a region lies outside the array",
          {"axis " + std::to_string(axis) + " has " + std::to_string(shape[axis]) +
           " positions, wanted " + std::to_string(length) + " from " + std::to_string(start)});
  }
}

}  // namespace shale
