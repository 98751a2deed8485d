// Makes the operands of a pass from those of a caller's function, whose types are those of its
// parameters.
#pragma once

#include <span>
#include <vector>

#include "parallel/operands/loop_operand.hpp"
#include "shale/apply_operands.hpp"

namespace shale::parallel {

/// The operands of a pass. Those that are written are also read.
/// Throws   invalid_argument (an operand's dtype is not that of its parameter)
std::vector<loop_operand> typed_operands(std::span<const detail::apply_operand> operands);

}  // namespace shale::parallel
