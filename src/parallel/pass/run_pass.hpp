// Drives a pass over prepared operands in a way that has been chosen. It runs *loads* in parallel:
// a load is one unit, or several units whose operands are brought into memory together. For each
// load it brings in the operands, runs the kernels of its units, and stores the outputs. While one
// load runs, the bytes of the next ones are requested.
//
// It has one loop for all ways. The differences between the ways are in the classes that it calls:
// window_walk (operands that are used in place), copied_operands and tiled_operands.
#pragma once

#include <type_traits>

#include "parallel/executor/shared_work.hpp"
#include "parallel/pass/unit.hpp"
#include "parallel/ways/way.hpp"
#include "shale/executor.hpp"

namespace shale::parallel {

/// Calls `body.run` for all units, from several threads, and ends the pass: the outputs hold the
/// results afterwards. Operands have one shape, up to the lengths of lanes. An output overlaps
/// another operand only if both have the same element at each index.
/// Throws   io, corrupt, out_of_memory, cancelled, exceptions of `body` and of sinks
void run_pass(std::span<const loop_operand> operands, const pass_options& options,
              const way& chosen, executor& on, unit_body body);

/// The same with a callable `body(unit)`.
template <class Body>
void run_pass(std::span<const loop_operand> operands, const pass_options& options,
              const way& chosen, executor& on, Body&& body) {
  run_pass(operands, options, chosen, on,
           unit_body{[](void* context, const unit& here) {
                       const foreign_call call;
                       (*static_cast<std::remove_reference_t<Body>*>(context))(here);
                     },
                     &body});
}

}  // namespace shale::parallel
