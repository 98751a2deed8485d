// Random shapes and layouts for property tests of code that walks strided elements.
//
// Every generator takes its random numbers from `choose`: a callable `index_t(lowest, highest)`,
// both ends included. `random_choices` is such a callable with a seed; `shrinking_choice` is one
// for RapidCheck properties.
//
//   shale::test::random_choices choose(seed);
//   const auto shape = shale::test::random_shape(choose, {.axes_max = 4});
//   const auto placed = shale::test::random_layout(choose, shape);
//   // placed.geometry fits a storage of placed.positions elements
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "shale/layout.hpp"

namespace shale::test {

/// Random numbers from a seed. They are the same on every machine, unlike those of the
/// distributions of <random>.
class random_choices {
 public:
  explicit random_choices(std::uint64_t seed);
  index_t operator()(index_t lowest, index_t highest);

 private:
  std::mt19937_64 engine_;
};

struct shape_options {
  index_t axes_max = 5;
  index_t longest = 6;
  bool may_be_empty = true;  ///< axes of length 0 appear (rarely)
};

/// A shape of 0 to `axes_max` axes; lengths 1 are common.
template <class Choose>
dims random_shape(Choose&& choose, const shape_options& options = {}) {
  dims shape = dims::filled(choose(0, options.axes_max), 1);
  for (auto& extent : shape) {
    const index_t kind = choose(0, 15);
    if (kind == 0 && options.may_be_empty) extent = 0;
    else if (kind > 3) extent = choose(1, options.longest);
  }
  return shape;
}

/// A layout and the number of elements that its storage needs.
struct placed_layout {
  layout geometry;
  index_t positions;
};

/// Whether two indices of a layout may name one element.
enum class sharing : bool {
  distinct,  ///< never: usable as an output
  allowed,   ///< stride 0 and overlapping strides appear: usable as an input
};

/// Strides and an offset for `shape`: axes in any memory order, each reversed or not, dense or with
/// small and (rarely) large gaps, with unused elements before and after.
template <class Choose>
placed_layout random_layout(Choose&& choose, const dims& shape,
                            sharing may_share = sharing::allowed) {
  std::vector<index_t> memory_order;  // innermost first
  for (index_t axis = 0; axis < shape.size(); ++axis)
    memory_order.insert(memory_order.begin() + choose(0, axis), axis);

  dims strides = dims::filled(shape.size(), 0);
  index_t inside = 1;  // number of elements that the axes so far span
  index_t before = 0, after = 0;
  for (const index_t axis : memory_order) {
    index_t stride = inside;
    const index_t gap = choose(0, 9);
    if (gap >= 8) stride += choose(1, 3);
    else if (gap == 7) stride = stride * choose(2, 3) + choose(0, 40);
    if (may_share == sharing::allowed) {
      const index_t kind = choose(0, 11);
      if (kind == 0) stride = 0;
      else if (kind == 1) stride = choose(1, 4);
    }
    const index_t span = std::max<index_t>(shape[axis] - 1, 0) * stride;
    inside = std::max(inside, span + std::max<index_t>(inside, stride));
    const bool reversed = choose(0, 3) == 0;
    strides[axis] = reversed ? -stride : stride;
    (reversed ? before : after) += span;
  }
  const index_t lead = choose(0, 3);
  return {layout(shape, strides, lead + before), lead + before + after + 1 + choose(0, 3)};
}

template <class Choose>
placed_layout random_layout(Choose&& choose) {
  return random_layout(choose, random_shape(choose));
}

/// A shape that broadcasts to `shape`: random leading axes are dropped, and other axes are set to 1
/// at random.
template <class Choose>
dims random_broadcastable(Choose&& choose, const dims& shape) {
  const index_t dropped = choose(0, 3) == 0 ? choose(0, shape.size()) : 0;
  dims result(shape.begin() + dropped, shape.end());
  for (auto& extent : result)
    if (choose(0, 3) == 0) extent = 1;
  return result;
}

// Compiled once, in random_layouts.cpp.
extern template dims random_shape(random_choices&, const shape_options&);
extern template placed_layout random_layout(random_choices&, const dims&, sharing);
extern template dims random_broadcastable(random_choices&, const dims&);

}  // namespace shale::test
