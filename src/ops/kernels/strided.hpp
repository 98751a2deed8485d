// Runs a loop over contiguous elements on operands with any strides.
//
// A kernel is written once, for contiguous operands. What is strided is first packed, and what is
// broadcast first repeated, into blocks on the stack that stay in the L1 cache; results for a
// strided output are scattered from there. So every layout runs the same vector code, and an
// element's value does not depend on where it lies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shale/index.hpp"

namespace shale::ops::kernels {

/// Bytes of one operand's block.
inline constexpr index_t block_bytes = 4096;

inline constexpr int most_operands = 4;

/// `count` elements of every operand, the output first, all contiguous.
using contiguous_loop = void (*)(std::byte* const* data, index_t count);

struct loop_shape {
  contiguous_loop run;
  std::uint8_t operands;               ///< the output included
  std::uint8_t widths[most_operands];  ///< bytes of an element of each
};

/// The same contract as `kernel`.
void run_strided(const loop_shape& loop, std::byte* const* data, const index_t* strides_bytes,
                 index_t inner, index_t outer);

/// Copies rows x columns elements of `width` bytes (1, 2, 4, 8 or 16) to contiguous memory.
void pack(std::byte* to, const std::byte* from, index_t width, index_t inner_stride,
          index_t outer_stride, index_t columns, index_t rows);

}  // namespace shale::ops::kernels
