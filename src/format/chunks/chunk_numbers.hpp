// Numbers the chunks of an array.
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

}  // namespace shale::format
