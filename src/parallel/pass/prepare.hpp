// Prepares the operands of a pass. Before a call touches an element, it broadcasts the operands to
// one shape and checks that outputs can be written. An input that overlaps an output in another
// layout is copied first. So the pass reads the elements that the input had before the call.
#pragma once

#include "parallel/operands/loop_operand.hpp"
#include "parallel/pass/copy.hpp"

namespace shale::parallel {

/// Broadcasts all operands to one shape and checks the written ones. An input that overlaps an
/// output is replaced by one of `copies`. The exception is an input in which each index names the
/// same element as in the output, because kernels read an element before they write it. If
/// `lane_axis` is not -1, operands keep their own lengths along that axis of the common shape.
/// Throws   invalid_argument (shapes; an output that broadcasts, or overlaps itself or another
///          output), access_denied, out_of_memory (naming the bytes of copies that do not fit),
///          io
void prepare(std::span<loop_operand> operands, input_copies& copies, index_t lane_axis = -1);

}  // namespace shale::parallel
