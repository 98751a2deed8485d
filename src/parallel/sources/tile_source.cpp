#include "shale/tile_source.hpp"

#include <algorithm>

#include "core/allocating.hpp"
#include "parallel/sources/check_source.hpp"
#include "shale/error.hpp"
#include "shale/layout.hpp"

namespace shale {

namespace {

// Throws unless both shapes have one rank and all extents of tiles are positive.
void check_grid(const dims& shape, const dims& tile_shape) {
  const bool positive =
      std::all_of(tile_shape.begin(), tile_shape.end(), [](index_t extent) { return extent > 0; });
  if (shape.size() == tile_shape.size() && positive) return;
  throw error(errc::invalid_argument, "the tile shape does not fit the shape of the tile source",
              {"shape " + to_string(shape) + ", tile shape " + to_string(tile_shape),
               "wanted as many positive extents as the shape has axes"});
}

}  // namespace

void parallel::check_source(const tile_source& source) {
  detail::allocating([&] {
    static_cast<void>(item_bytes(source.dtype()));  // throws if it is not a dtype
    static_cast<void>(element_count(source.shape()));
    check_grid(source.shape(), source.tile_shape());
  });
}

tile_source::~tile_source() = default;

void tile_source::store(const dims& tile, const tensor&) {
  throw error(errc::access_denied, "the tile source is read-only", {"tile " + to_string(tile)});
}

void tile_source::prefetch(const dims&) const noexcept {}

region tile_region(const dims& shape, const dims& tile_shape, const dims& tile) {
  check_grid(shape, tile_shape);
  bool inside = tile.size() == shape.size();
  for (index_t axis = 0; inside && axis < shape.size(); ++axis)
    inside =
        tile[axis] >= 0 && tile[axis] <= (std::max<index_t>(shape[axis], 1) - 1) / tile_shape[axis];
  if (!inside)
    throw error(errc::invalid_argument, "a tile lies outside its tile source",
                {"got tile " + to_string(tile) + " of shape " + to_string(shape) + " in tiles of " +
                 to_string(tile_shape)});
  region result{dims::filled(shape.size(), 0), shape};
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    result.start[axis] = tile[axis] * tile_shape[axis];
    result.shape[axis] = std::min(tile_shape[axis], shape[axis] - result.start[axis]);
  }
  return result;
}

}  // namespace shale
