// Runs a loop over contiguous elements on operands with any strides.
//
// A kernel is written once, for contiguous operands. Elements of a strided operand are first
// copied, and elements of a broadcast operand repeated, into blocks on the stack, which stay in the
// L1 cache. Results for a strided output are written to such a block and copied from there. So
// every layout runs the same vector code, and the bits of a result do not depend on the layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shale/index.hpp"

namespace shale::ops::kernels {

/// Bytes of one operand's block.
inline constexpr index_t block_bytes = 4096;

inline constexpr int kernel_operands_max = 4;

/// A loop over `count` contiguous elements of every operand. data[0] is the output.
using contiguous_loop = void (*)(std::byte* const* data, index_t count);

struct loop_shape {
  contiguous_loop run;
  std::uint8_t operands;                     ///< number of operands with the output
  std::uint8_t widths[kernel_operands_max];  ///< bytes of an element, by operand
};

/// Runs `loop` on a block, with the contract of `kernel`.
void run_strided(const loop_shape& loop, std::byte* const* data, const index_t* strides_bytes,
                 index_t inner, index_t outer);

/// Copies rows x columns elements of `width` bytes (1, 2, 4, 8 or 16) to contiguous memory.
void pack(std::byte* to, const std::byte* from, index_t width, index_t inner_stride,
          index_t outer_stride, index_t columns, index_t rows);

/// Copies rows x columns elements of `width` bytes from contiguous memory.
void unpack(std::byte* to, const std::byte* from, index_t width, index_t inner_stride,
            index_t outer_stride, index_t columns, index_t rows);

}  // namespace shale::ops::kernels
