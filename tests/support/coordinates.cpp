#include "support/coordinates.hpp"

namespace shale::test {

index_list coordinates_of(std::int64_t number, const index_list& shape) {
  index_list at(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    at[axis] = number % shape[axis];
    number /= shape[axis];
  }
  return at;
}

std::size_t number_of(const index_list& at, const index_list& shape) {
  std::int64_t number = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) number = number * shape[axis] + at[axis];
  return static_cast<std::size_t>(number);
}

std::int64_t count_of(const index_list& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

}  // namespace shale::test
