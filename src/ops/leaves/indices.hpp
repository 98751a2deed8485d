// Converts and checks the indices of `take`, `gather`, `scatter` and similar functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops/graph/graph.hpp"
#include "shale/expr.hpp"

namespace shale::ops {

/// The indices as int64. A larger uint64 becomes the largest int64, which is out of range
/// everywhere.
/// Throws   invalid_argument (no integer dtype), naming `function`
expr as_positions(const expr& indices, const char* function);

/// Requires that indices have the rank of an array, and that they are no longer than the array,
/// except along `axis`. The error calls the array by `array_name`, such as "operand".
/// Throws   invalid_argument, naming `function`
void require_not_longer(const dims& indices, const dims& array, index_t axis, const char* function,
                        const char* array_name);

/// Whether `indexed` reads `count` elements of `a` from the tiles that they lie in: `a` is a view of
/// a tile source, and has at least that many elements.
bool is_read_from_tiles(const expr& a, index_t count);

/// The elements of `a` at positions that the axes of `shape` and the indices name; indices come
/// from as_positions and are broadcast to `shape`. Operands that are not tensors are staged: `a` as
/// it is, and indices before they are broadcast. If the elements are read from tiles, they are
/// staged instead of `a`; then one index may count the elements of `a`.
/// Throws   invalid_argument (more than 2^63 - 1 elements), out_of_memory
expr indexed(const expr& a, const dims& shape, std::vector<detail::position_of_axis> axes,
             const std::vector<expr>& indices);

/// Inserts axes of length 1 behind the last one.
expr with_axes_behind(expr values, index_t count);

/// The index at `at`, which is read from memory once: the value that a caller checks is the value
/// that it uses, even if another process writes the memory meanwhile.
inline std::int64_t index_at(const std::byte* at) noexcept {
  std::int64_t index;
  std::memcpy(&index, at, sizeof(index));
  asm("" : "+r"(index));  // so that the compiler does not load it again
  return index;
}

/// A negative index counts from the end.
inline index_t position_from_start(std::int64_t index, index_t extent) noexcept {
  return index < 0 ? index + extent : index;
}

/// Throws   invalid_argument, with the index, the axis and its extent
[[noreturn]] void throw_index_out_of_range(index_t index, index_t axis, index_t extent);

}  // namespace shale::ops
