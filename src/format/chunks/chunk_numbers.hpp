// Numbers the chunks of an array.
//
// Invariants
//   numbers.1  a chunk keeps its number while the shape changes, as long as the capacity of every
//              axis but the first stays the same: the number does not depend on the first axis's
//   numbers.2  the order of the numbers is the row-major order of the chunks in any capacity
#pragma once

#include <cstdint>

#include "format/catalog/array_record.hpp"
#include "shale/dims.hpp"

namespace shale::format {

/// Chunks along each axis that the shape needs; 0 where the shape is 0.
dims chunk_grid(const array_record& record);

/// The number of the chunk at `index` (0 <= index[a] < grid_capacity[a]): row-major in the grid
/// capacity, so that it stays the same while the array grows inside the capacity.
std::uint64_t chunk_number(const chunked_layout& layout, const dims& index);

/// The inverse of `chunk_number`.
dims chunk_index(const chunked_layout& layout, std::uint64_t number);

/// Whether the shape needs the chunk of that number: it is inside the grid of the record's shape.
bool is_in_grid(const array_record& record, std::uint64_t number);

/// A capacity for a new array whose shape needs `grid` chunks along each axis. All axes but the
/// first get room to grow (the same number of doublings each, one more for some), so that numbers
/// need not change soon. The first axis needs no room (numbers.1), but the product of the capacity
/// leaves it as much. Where an extent of `grid` is 0, the capacity is at least 1.
dims capacity_with_room(const dims& grid);

/// A capacity for `grid` chunks along each axis, of an array that has had `capacity`. It is equal
/// to `capacity`, except perhaps along the first axis, as long as the other axes have room and the
/// product is not above chunk_numbers_max. Otherwise room is distributed anew, and each axis that
/// has no room gets at least twice its old capacity if it can.
dims grown_capacity(const dims& capacity, const dims& grid);

/// Whether chunks have the same numbers in both capacities (numbers.1).
bool same_numbers(const dims& a, const dims& b) noexcept;

}  // namespace shale::format
