// Moving elements between layouts, whatever they mean: only their width matters here.
#pragma once

#include "parallel/kernel.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// The kernel that copies items of 1, 2, 4, 8 or 16 bytes: out, in.
kernel copy_kernel(std::size_t item_bytes) noexcept;

/// Copies `from` into `to`: same shape, same dtype, no overlap.
void copy_elements(const tensor& to, const tensor& from, executor& on);

/// The same on the calling thread alone, inside somebody's tile.
void copy_elements_here(const tensor& to, const tensor& from);

}  // namespace shale::parallel
