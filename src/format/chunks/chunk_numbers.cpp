#include "format/chunks/chunk_numbers.hpp"

#include <algorithm>
#include <optional>

#include "core/grid.hpp"

namespace shale::format {
namespace {

// The product of the extents, or nothing if it is above chunk_numbers_max.
std::optional<std::uint64_t> numbers_in(const dims& capacity) noexcept {
  std::uint64_t product = 1;
  for (const index_t extent : capacity) {
    const auto next = checked_mul(product, static_cast<std::uint64_t>(extent));
    if (!next || *next > chunk_numbers_max) return std::nullopt;
    product = *next;
  }
  return product;
}

dims at_least_one(dims grid) noexcept {
  for (index_t& extent : grid) extent = std::max<index_t>(extent, 1);
  return grid;
}

// Doubles one axis after the other, those of `order` in turn, until the numbers are used up. The
// doublings of the first axis are only counted, and stay free for it.
dims with_doublings(dims capacity, const dims& order) noexcept {
  std::uint64_t used = numbers_in(capacity).value_or(chunk_numbers_max);
  for (index_t turn = 0; !order.empty() && used <= chunk_numbers_max / 2; ++turn) {
    const index_t axis = order[turn % order.size()];
    if (axis != 0) capacity[axis] *= 2;
    used *= 2;
  }
  return capacity;
}

}  // namespace

dims chunk_grid(const array_record& record) {
  return shale::detail::grid_of(record.shape, record.chunked().chunk_shape);
}

std::uint64_t chunk_number(const chunked_layout& layout, const dims& index) {
  std::uint64_t number = 0;
  for (index_t axis = 0; axis < index.size(); ++axis)
    number = number * static_cast<std::uint64_t>(layout.grid_capacity[axis]) +
             static_cast<std::uint64_t>(index[axis]);
  return number;
}

dims chunk_index(const chunked_layout& layout, std::uint64_t number) {
  dims index = layout.grid_capacity;
  for (index_t axis = index.size(); axis-- > 0;) {
    const auto length = static_cast<std::uint64_t>(layout.grid_capacity[axis]);
    index[axis] = static_cast<index_t>(number % length);
    number /= length;
  }
  return index;
}

bool is_in_grid(const array_record& record, std::uint64_t number) {
  const chunked_layout& layout = record.chunked();
  const dims grid = chunk_grid(record);
  const dims index = chunk_index(layout, number);
  for (index_t axis = 0; axis < grid.size(); ++axis)
    if (index[axis] >= grid[axis]) return false;
  return chunk_number(layout, index) == number;
}

dims capacity_with_room(const dims& grid) {
  dims order;
  for (index_t axis = 0; axis < grid.size(); ++axis) order.push_back(axis);
  return with_doublings(at_least_one(grid), order);
}

dims grown_capacity(const dims& capacity, const dims& grid) {
  const dims needed = at_least_one(grid);
  dims grown = capacity;
  dims outgrown;
  for (index_t axis = 0; axis < grid.size(); ++axis) {
    if (axis == 0) grown[axis] = std::max(capacity[axis], needed[axis]);
    else if (needed[axis] > capacity[axis]) outgrown.push_back(axis);
  }
  if (outgrown.empty() && numbers_in(grown)) return grown;
  if (outgrown.empty()) outgrown.push_back(0);
  // The axes without room come first. An array has at most 2^59 chunks, so three doublings are left
  // at least.
  dims order = outgrown;
  for (index_t axis = 0; axis < grid.size(); ++axis)
    if (std::find(outgrown.begin(), outgrown.end(), axis) == outgrown.end()) order.push_back(axis);
  return with_doublings(needed, order);
}

bool same_numbers(const dims& a, const dims& b) noexcept {
  return a.size() == b.size() && (a.empty() || std::equal(a.begin() + 1, a.end(), b.begin() + 1));
}

}  // namespace shale::format
