// Python's slice: the positions of one axis that a view keeps.
#pragma once

#include <optional>

#include "shale/index.hpp"

namespace [[gnu::visibility("default")]] shale {

/// `start:stop:step` with Python's meaning. Negative positions count from the end. Without a start
/// or a stop, the slice covers the axis up to its end in that direction. Positions beyond the axis
/// are clamped. `slice{.step = -1}` reverses, `slice{2, 5}` keeps 2, 3, 4.
struct slice {
  std::optional<index_t> start = std::nullopt;
  std::optional<index_t> stop = std::nullopt;
  index_t step = 1;
};

/// A slice that was applied to an axis: `length` positions from `start` on, at distances of `step`.
/// An empty one is always {0, 0, 1}.
struct slice_range {
  index_t start = 0;
  index_t length = 0;
  index_t step = 1;
};

/// The positions of an axis of `length` (>= 0) positions that `range` keeps.
/// Throws   invalid_argument for a step of 0
slice_range resolve(const slice& range, index_t length);

}  // namespace shale
