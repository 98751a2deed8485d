#include "parallel/plan/strided_axes.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "shale/error.hpp"

namespace shale::parallel {

strided_axes::strided_axes(std::span<const plan_operand> operands)
    : shape(operands[0].layout.shape()), directions(dims::filled(shape.size(), 1)) {
  for (index_t axis = 0; axis < rank(); ++axis) own_axes.push_back(axis);
  strides.reserve(operands.size());
  origins.reserve(operands.size());
  for (const auto& operand : operands) {
    if (operand.layout.shape() != shape)
      throw error(errc::invalid_argument, "operands of one loop differ in shape",
                  {to_string(shape) + " and " + to_string(operand.layout.shape())});
    const auto item = static_cast<index_t>(operand.item_bytes);
    dims bytes = operand.layout.strides();
    for (index_t axis = 0; axis < rank(); ++axis)
      bytes[axis] = shape[axis] == 1 ? 0 : bytes[axis] * item;
    strides.push_back(bytes);
    origins.push_back(operand.layout.offset() * item);
  }
}

void strided_axes::sort(std::span<const plan_operand> operands) {
  dims order;
  for (index_t axis = 0; axis < rank(); ++axis)
    if (shape[axis] != 1) order.push_back(axis);

  // Returns a positive number if axis `a` should lie inside axis `b`. The first operand that moves
  // along both axes with different strides decides. Operands of elements come before the others.
  const auto compare = [&](index_t a, index_t b) -> int {
    for (const bool ordering : {true, false}) {
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (operands[k].decides_axis_order() != ordering) continue;
        const index_t sa = std::abs(strides[k][a]);
        const index_t sb = std::abs(strides[k][b]);
        if (sa != 0 && sb != 0 && sa != sb) return sa < sb ? 1 : -1;
      }
    }
    return 0;
  };
  // This is an insertion sort, because `compare` is not transitive if strides are zero: a standard
  // sort would have undefined behaviour. Ties keep their order.
  for (index_t i = 1; i < order.size(); ++i) {
    for (index_t j = i; j > 0; --j) {
      const int wanted = compare(order[j - 1], order[j]);
      if (wanted <= 0) break;
      std::swap(order[j - 1], order[j]);
    }
  }

  reorder(order);
  reverse_backward_axes();
}

void strided_axes::reorder(const dims& order) {
  const auto picked = [&](const dims& values) {
    dims result;
    for (const index_t axis : order) result.push_back(values[axis]);
    return result;
  };
  shape = picked(shape);
  own_axes = picked(own_axes);
  directions = picked(directions);
  for (auto& bytes : strides) bytes = picked(bytes);
}

// Reverses an axis if at least one operand walks it backwards and no operand walks it forwards.
void strided_axes::reverse_backward_axes() {
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (index_t axis = 0; axis < rank(); ++axis) {
    const auto is_backwards = [&](const dims& bytes) { return bytes[axis] < 0; };
    const auto is_forwards = [&](const dims& bytes) { return bytes[axis] > 0; };
    if (std::none_of(strides.begin(), strides.end(), is_backwards) ||
        std::any_of(strides.begin(), strides.end(), is_forwards))
      continue;
    directions[axis] = -directions[axis];
    for (std::size_t k = 0; k < strides.size(); ++k) {
      if (!empty) origins[k] += strides[k][axis] * (shape[axis] - 1);
      strides[k][axis] = -strides[k][axis];
    }
  }
}

void strided_axes::merge() {
  if (shape.empty()) return;
  index_t kept = 0;
  for (index_t axis = 1; axis < shape.size(); ++axis) {
    const bool even = std::all_of(strides.begin(), strides.end(),
                                  [&](const dims& s) { return s[kept] == shape[axis] * s[axis]; });
    if (even) {
      shape[kept] *= shape[axis];
      for (auto& bytes : strides) bytes[kept] = bytes[axis];
    } else {
      ++kept;
      shape[kept] = shape[axis];
      for (auto& bytes : strides) bytes[kept] = bytes[axis];
    }
  }
  while (shape.size() > kept + 1) {
    shape.pop_back();
    for (auto& bytes : strides) bytes.pop_back();
  }
}

bool strided_axes::pair_fastest(std::span<const plan_operand> operands) {
  index_t other = -1;
  for (std::size_t k = 0; k < operands.size() && other < 0; ++k)
    if (operands[k].decides_axis_order()) other = nearest_axis(k);
  if (other < 0) return false;
  const auto rotate = [&](dims& values) {
    std::rotate(values.begin() + other, values.begin() + other + 1, values.end() - 1);
  };
  rotate(shape);
  rotate(own_axes);
  rotate(directions);
  for (auto& bytes : strides) rotate(bytes);
  return true;
}

void strided_axes::ensure_one_axis() {
  if (!shape.empty()) return;
  shape.push_back(1);
  own_axes.push_back(-1);
  directions.push_back(1);
  for (auto& bytes : strides) bytes.push_back(0);
}

index_t strided_axes::nearest_axis(std::size_t operand) const noexcept {
  const dims& bytes = strides[operand];
  const index_t last = rank() - 1;
  // With a stride below 64 bytes, neighbours along the last axis share a cache line.
  if (rank() < 2 || std::abs(bytes[last]) < 64) return -1;
  index_t nearest = last;
  for (index_t axis = 0; axis < rank(); ++axis)
    if (bytes[axis] != 0 && std::abs(bytes[axis]) < std::abs(bytes[nearest])) nearest = axis;
  return nearest != last && shape[nearest] > 1 ? nearest : -1;
}

}  // namespace shale::parallel
