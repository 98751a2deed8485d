// Row-major coordinates, computed one element at a time.
#pragma once

#include <vector>

#include "support/index_oracle.hpp"

namespace shale::test {

/// The coordinates of element `number` of a row-major array.
inline index_list coordinates_of(index_t number, const index_list& shape) {
  index_list at(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    at[axis] = number % shape[axis];
    number /= shape[axis];
  }
  return at;
}

/// The number of the element at those coordinates of a row-major array.
inline std::size_t number_of(const index_list& at, const index_list& shape) {
  index_t number = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) number = number * shape[axis] + at[axis];
  return static_cast<std::size_t>(number);
}

inline index_t count_of(const index_list& shape) {
  index_t count = 1;
  for (const index_t extent : shape) count *= extent;
  return count;
}

}  // namespace shale::test
