// Where the elements of an indexed leaf lie in the tiles of its source, as far as it is known without
// reading an index.
//
// The axes of the leaf that no index depends on move along axes of the source, its run axes. The
// positions along all other axes of the leaf are the points. A point has one position along each of
// the remaining axes of the source, its fixed axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/graph/graph.hpp"
#include "shale/dims.hpp"
#include "shale/index.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

/// An axis of the source along which a point has one position: base + step * p, where p is the
/// position along an axis of the leaf's input.
struct fixed_axis {
  index_t axis;   ///< of the source
  index_t input;  ///< the axis of the leaf's input; -1: p is 0
  index_t base;
  index_t step;
  index_t extent;  ///< of a tile
  index_t inside;  ///< of a tile inside the source: user's tiles may be longer than the source
  index_t tiles;
};

/// What gives the position along an axis of the leaf's input: an index, or an axis of the leaf, or
/// nothing (the position is 0).
struct input_position {
  index_t index = -1;
  index_t named = 0;   ///< the axis that an error of the index names
  index_t extent = 0;  ///< of the input's axis
  index_t base = 0;    ///< of the axis of the leaf: base + the sum of step * c
  dims step = {};      ///< by point axis
};

/// An index tensor over the point axes, in bytes.
struct point_index {
  const std::byte* first;
  dims stride;
};

/// Positions of an axis of the source that lie in one tile, all of which the output has.
struct run_in_tile {
  index_t tile;
  index_t first;  ///< number of the first position in ascending order
  index_t count;
  index_t offset;  ///< of the first position in the tile
};

/// An axis of the source along which every point has all positions of an axis of the output, which
/// is not empty. They are numbered in ascending order.
struct run_axis {
  index_t axis;    ///< of the source
  index_t start;   ///< the lowest position
  index_t step;    ///< positive
  index_t count;   ///< of positions
  index_t extent;  ///< of a tile
  index_t to;      ///< bytes of the output between neighbours

  /// The number of tiles with a position. If the step is at most the extent of a tile, they are all
  /// tiles from the first to the last one; else each position lies in a tile of its own.
  index_t tiles() const;

  /// The positions in tile `number` of these.
  run_in_tile at(index_t number) const;
};

struct reading_plan {
  const tile_source& source;
  std::vector<input_position> inputs;  ///< by axis of the leaf's input
  bool is_flat = false;                ///< the only index counts the elements of the input
  dims input_shape;
  std::vector<point_index> indices;
  std::vector<fixed_axis> fixed;
  std::vector<run_axis> runs;
  dims points;        ///< the shape of the points
  dims to;            ///< by point axis: bytes of the output
  index_t first = 0;  ///< bytes from the output's first element to that of the first point

  /// The tiles along the fixed axes together; the largest number if they are more.
  std::uint64_t fixed_tiles() const;

  /// The tiles along the run axes together.
  index_t tiles_of_runs() const;
};

/// The plan of a leaf whose input is a source leaf. `indices` are the tensors of the leaf's indices,
/// and `to_bytes` the strides of the output, by axis of the leaf. The source must outlive the plan.
/// Throws   out_of_memory
reading_plan plan_reading(const detail::indexed_leaf& leaf, const std::vector<tensor>& indices,
                          const dims& to_bytes);

}  // namespace shale::ops
