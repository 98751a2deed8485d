// Compares the bytes that calls read with their stored checksums, if the executor asks for it.
#pragma once

#include "parallel/plan/plan.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// Whether calls on the executor compare the bytes that they read from this storage.
inline bool compares_checksums(const executor& on, const storage& bytes) noexcept {
  return on.checksums() == checksum_use::compared && bytes.has_checksums();
}

/// Compares all segments that operand `index` of the plan touches, in parallel. Position 0 of the
/// operand's layout is the first byte of `bytes`.
/// Throws   corrupt, io
void compare_checksums_of(const plan& loop_plan, int index, const storage& bytes, executor& on);

/// Compares all segments that `values` touches, in parallel. Calls that read `values` in place,
/// without a pass that would compare them, do this first.
/// Throws   corrupt, io
void compare_checksums(const tensor& values, executor& on);

}  // namespace shale::parallel
