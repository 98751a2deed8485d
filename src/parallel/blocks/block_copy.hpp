// Copies elements between two layouts on the calling thread. It is the copy that code inside a tile
// uses: it starts no pass, so it needs no executor and never waits for a lock of one.
#pragma once

#include "parallel/blocks/kernel.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// The kernel that copies items of 1, 2, 4, 8 or 16 bytes. Operand 0 is the output, operand 1 the
/// input.
kernel copy_kernel(std::size_t item_bytes) noexcept;

/// Whether neighbours of a block's output lie along its rows, and those of its input along its
/// columns. `strides_bytes` are those of the copy kernel.
bool is_transposed(const index_t* strides_bytes, std::size_t item_bytes) noexcept;

/// The same kernel, except that it stores large transposed blocks past the cache. The caller must
/// order these stores (see nontemporal_copy.hpp).
kernel copy_kernel_past_the_cache(std::size_t item_bytes) noexcept;

/// Copies `from` into `to`, which have one shape and one dtype and do not overlap.
/// Cost     O(elements); makes one plan
void copy_elements_here(const tensor& to, const tensor& from);

}  // namespace shale::parallel
