#include "format/chunks/chunk_numbers.hpp"

#include "core/grid.hpp"

namespace shale::format {

dims chunk_grid(const array_record& record) {
  return shale::detail::grid_of(record.shape, record.chunked().chunk_shape);
}

std::uint64_t chunk_number(const chunked_layout& layout, const dims& index) {
  std::uint64_t number = 0;
  for (index_t axis = 0; axis < index.size(); ++axis)
    number = number * static_cast<std::uint64_t>(layout.grid_capacity[axis]) +
             static_cast<std::uint64_t>(index[axis]);
  return number;
}

dims chunk_index(const chunked_layout& layout, std::uint64_t number) {
  dims index = layout.grid_capacity;
  for (index_t axis = index.size(); axis-- > 0;) {
    const auto length = static_cast<std::uint64_t>(layout.grid_capacity[axis]);
    index[axis] = static_cast<index_t>(number % length);
    number /= length;
  }
  return index;
}

}  // namespace shale::format
