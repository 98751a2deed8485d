// The points of an indexed leaf, each with the tile of the source that it lies in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/leaves/reading_plan.hpp"
#include "shale/index.hpp"

namespace shale::ops {

/// A point whose tile is known.
struct placed_point {
  std::uint64_t tile;    ///< its number among the tiles of the fixed axes, row-major
  std::uint64_t inside;  ///< the position in that tile, row-major over fixed_axis::inside
  index_t to;            ///< bytes from the first element of the output
};
static_assert(sizeof(placed_point) == 24);

/// The memory that a reader of points needs for each. While they are sorted there are two of each,
/// and at most as many counts of 8 bytes. Later there is one of each, and at most as many groups of
/// 16 bytes.
inline constexpr std::size_t bytes_per_point = 2 * sizeof(placed_point) + sizeof(std::uint64_t);

/// Finds the tiles of `count` points from point `first` on, in row-major order.
/// Throws   invalid_argument (an index is out of range)
void find_points(const reading_plan& plan, index_t first, index_t count, placed_point* found);

/// Sorts points by their tiles, of which there are `tiles`: by counting, if there are no more tiles
/// than points.
/// Throws   out_of_memory
void sort_by_tile(std::vector<placed_point>& points, std::uint64_t tiles);

}  // namespace shale::ops
