#include "shale/tile_source.hpp"

#include <algorithm>

#include "shale/error.hpp"

namespace shale {

tile_source::~tile_source() = default;

void tile_source::store(const dims& tile, const tensor&) {
  throw error(errc::access_denied, "the tile source is read-only", {"tile " + to_string(tile)});
}

void tile_source::prefetch(const dims&) const noexcept {}

region tile_region(const dims& shape, const dims& tile_shape, const dims& tile) {
  region result{dims::filled(shape.size(), 0), shape};
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    result.start[axis] = tile[axis] * tile_shape[axis];
    result.shape[axis] = std::min(tile_shape[axis], shape[axis] - result.start[axis]);
  }
  return result;
}

}  // namespace shale
