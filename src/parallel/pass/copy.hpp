// Copies elements between layouts, in parallel. A plain copy depends on the width of the elements
// only; a conversion is a kernel that the caller gives. A copy is a pass whose operands need no
// preparation.
#pragma once

#include "parallel/blocks/kernel.hpp"
#include "parallel/windows/window_walk.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// Copies `from` into `to`, which have one shape and one dtype and do not overlap. `to` is writable
/// and no two of its indices name one element.
/// Throws   io, corrupt, out_of_memory, cancelled
void copy_elements(const tensor& to, const tensor& from, executor& on);

/// The same with a kernel that converts from the dtype of `from` to that of `to`.
void copy_elements_by(kernel convert, const tensor& to, const tensor& from, executor& on,
                      streams_if streams = streams_if::larger_than_half_the_budget);

/// Copies the elements into new memory of the executor's pool, in the same storage order. Broadcast
/// axes are not repeated in memory.
/// Throws   out_of_memory naming the bytes if the copy exceeds the budget
tensor copied(const tensor& values, executor& on);

}  // namespace shale::parallel
