#include "parallel/mapped/balanced_tile_shape.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "parallel/plan/fault_around.hpp"

namespace shale::parallel {

namespace {

// The operand's axes from the narrowest stride to the widest. Broadcast axes are left out.
dims narrowest_first(const plan_operand& operand) {
  dims order;
  for (index_t axis = 0; axis < operand.layout.rank(); ++axis)
    if (operand.layout.strides()[axis] != 0) order.push_back(axis);
  std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) {
    return std::abs(operand.layout.strides()[a]) < std::abs(operand.layout.strides()[b]);
  });
  return order;
}

}  // namespace

// A tile of a file consists of *pieces*: runs of bytes that are contiguous in the file. Reading a
// file in short pieces is slow, so pieces should be long. The length of an operand's piece is the
// product of the tile's extents along the operand's narrowest axes, as long as the tile covers each
// of them, and along the first axis that it does not cover. If operands lie in different orders, a
// longer piece of one operand costs shorter pieces of another, because the tile's elements are
// limited. The fair shape makes the shortest pieces as long as possible:
//
//   start with `least`
//   repeat: take the operand with the shortest pieces, and the first of its axes that the tile does
//           not cover; double the tile's extent along this axis
//   until all pieces have 64 KiB (fault_around_bytes), or the tile would exceed `elements_max`
//
// For example, two square matrices of float32 that lie in opposite orders get square tiles.
dims balanced_tile_shape(std::span<const plan_operand> operands, const dims& least,
                         index_t elements_max) {
  const dims& shape = operands.front().layout.shape();
  std::vector<dims> orders;
  for (const auto& operand : operands) orders.push_back(narrowest_first(operand));
  dims tile = least;
  for (;;) {
    std::size_t shortest = fault_around_bytes;
    index_t axis = -1;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      std::size_t piece = operands[k].item_bytes;
      for (const index_t next : orders[k]) {
        piece *= static_cast<std::size_t>(tile[next]);
        if (tile[next] == shape[next]) continue;
        if (piece < shortest) {
          shortest = piece;
          axis = next;
        }
        break;
      }
    }
    if (axis < 0) return tile;
    const index_t before = tile[axis];
    tile[axis] = std::min(2 * before, shape[axis]);
    if (element_count(tile) > elements_max) {
      tile[axis] = before;
      return tile;
    }
  }
}

}  // namespace shale::parallel
