// Python's slice: which positions of one axis to keep.
#pragma once

#include <optional>

#include "shale/index.hpp"

namespace [[gnu::visibility("default")]] shale {

/// `start:stop:step` with Python's meaning: negative positions count from the end, absent ones mean
/// the end that the step walks from or to, and positions beyond the axis are clamped.
/// `slice{.step = -1}` reverses, `slice{2, 5}` keeps 2, 3, 4.
struct slice {
  std::optional<index_t> start = std::nullopt;
  std::optional<index_t> stop = std::nullopt;
  index_t step = 1;
};

/// A slice applied to an axis: `length` positions, the first at `start`, `step` apart. An empty one
/// is always {0, 0, 1}.
struct slice_range {
  index_t start = 0;
  index_t length = 0;
  index_t step = 1;
};

/// Applies `which` to an axis of `length` (>= 0) positions.
/// Throws   invalid_argument for a step of 0
slice_range resolve(const slice& which, index_t length);

}  // namespace shale
