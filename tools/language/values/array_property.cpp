#include "language/values/array_property.hpp"

#include <cstdint>
#include <vector>

namespace shale::tools {

std::optional<value> array_property(const expr& array, std::string_view name) {
  if (name == "T") {
    dims reversed;
    for (index_t axis = array.rank(); axis-- > 0;) reversed.push_back(axis);
    return value{array.permute_dims(reversed)};
  }
  if (name == "shape") {
    std::vector<value> shape;
    for (const index_t extent : array.shape()) shape.emplace_back(std::int64_t{extent});
    return value{value::tuple(std::move(shape))};
  }
  if (name == "size") return value{std::int64_t{array.size()}};
  if (name == "ndim") return value{std::int64_t{array.rank()}};
  if (name == "dtype") return value{array.dtype()};
  return std::nullopt;
}

}  // namespace shale::tools
