// Chooses the shape of tiles that are copied between mapped files and memory.
#pragma once

#include <span>

#include "parallel/plan/plan_operand.hpp"

namespace shale::parallel {

/// Chooses the extents of tiles that are copied from and to `operands`, which have one shape. The
/// result is at least `least` along each axis. It has at most `elements_max` elements, unless
/// `least` has more.
dims balanced_tile_shape(std::span<const plan_operand> operands, const dims& least,
                         index_t elements_max);

}  // namespace shale::parallel
