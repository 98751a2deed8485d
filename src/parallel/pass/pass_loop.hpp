// Runs one engine call as a pass over an index space, unit by unit. Every engine call is such a
// pass: it prepares its operands, chooses its way (see way.hpp), and runs the units in that way.
//
// Invariants
//   pass.1  operands are prepared once, and the way is chosen once, before any element is read
//   pass.2  the elements of every operand are addressable while the kernels of a unit run
//   pass.3  each unit runs once, on one worker
//
// A pass knows neither the dtypes nor the meaning of the kernels.
#pragma once

#include <vector>

#include "parallel/pass/copy.hpp"
#include "parallel/pass/run_pass.hpp"
#include "parallel/ways/way.hpp"
#include "shale/executor.hpp"

namespace shale::parallel {

/// One call's pass.
class pass_loop {
 public:
  /// Prepares the operands and chooses the way.
  /// Throws   as `prepare`
  pass_loop(std::vector<loop_operand> operands, const pass_options& options, executor& on);

  /// The number of units; `run` numbers them from 0.
  index_t unit_count() const noexcept { return way_.units.tile_count(); }

  /// For passes with lanes: the elements of an operand's lanes, and the stride between neighbours
  /// of a lane in the memory that kernels see, in elements. The stride is 0 if lanes have one
  /// element.
  index_t lane_size(std::size_t operand) const noexcept;
  index_t lane_stride(std::size_t operand) const noexcept;

  /// Calls `body(unit)` for all units, from several threads. The outputs hold the results
  /// afterwards.
  /// Throws   io, corrupt, out_of_memory, cancelled, exceptions of `body` and of sinks
  template <class Body>
  void run(Body&& body) {
    run_pass(operands_, options_, way_, on_, body);
  }

 private:
  input_copies copies_;
  std::vector<loop_operand> operands_;
  const pass_options options_;
  executor& on_;
  way way_;
};

}  // namespace shale::parallel
