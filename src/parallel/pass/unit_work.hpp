// Runs the caller's function on one unit: gives it scratch memory, counts the unit's bytes, and
// leaves partial states to unit_states.
#pragma once

#include <algorithm>
#include <optional>

#include "parallel/executor/worker_scratch.hpp"
#include "parallel/pass/pass_bytes.hpp"
#include "parallel/pass/unit.hpp"
#include "parallel/pass/unit_states.hpp"
#include "parallel/stores/store_choice.hpp"
#include "parallel/ways/way.hpp"
#include "shale/executor.hpp"

namespace shale::parallel {

/// The work on the units of one pass.
/// Threads  any, for different units; a worker works on one unit at a time
class unit_work {
 public:
  /// `units`, `operands`, `options` and `on` must outlive this object. At each position of the
  /// pass, `written_bytes` are written.
  unit_work(const plan& units, std::span<const loop_operand> operands, const pass_options& options,
            std::size_t written_bytes, unit_body body, executor& on);

  /// Works on a unit that lies in `loop_plan`, a plan with the axes of all units.
  void run(index_t number, int worker, const plan& loop_plan, std::span<std::byte* const> bases);

  /// Works on a unit whose operands have a plan of their own: `operands` are its elements alone.
  /// `box` is its place in the pass's own axes.
  void run_alone(index_t number, int worker, const region& box,
                 std::span<const loop_operand> operands);

  /// The number of workers that have scratch memory.
  int workers() const noexcept {
    return std::min(scratch_.workers(), nontemporal_buffers_.workers());
  }

  /// The listener for a failure of the loop over the units; null if there is none.
  failure_listener* listener() noexcept { return states_ ? states_->listener() : nullptr; }

 private:
  struct writing;

  void compute(unit& here, const region& box);
  static void write(void* context, const unit& here);

  const plan& units_;
  const std::span<const loop_operand> operands_;
  const pass_options& options_;
  const unit_body body_;
  const dims shape_;  // the pass's index space
  pass_bytes bytes_;
  store_choice stores_;
  worker_scratch scratch_;
  worker_scratch nontemporal_buffers_;
  std::optional<unit_states> states_;  // nothing if the pass has no states
};

}  // namespace shale::parallel
