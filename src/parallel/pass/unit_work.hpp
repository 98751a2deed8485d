// Runs the caller's function on one unit: gives it scratch memory and partial states, counts the
// unit's bytes, and hands its partial states to the reduction tree.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>

#include "parallel/executor/counters.hpp"
#include "parallel/executor/worker_scratch.hpp"
#include "parallel/fold/fold.hpp"
#include "parallel/fold/fold_chain.hpp"
#include "parallel/pass/unit.hpp"
#include "parallel/stores/store_choice.hpp"
#include "parallel/ways/way.hpp"
#include "shale/executor.hpp"

namespace shale::parallel {

/// Distributes the bytes that a pass reads to its units, so that statistics grow while it runs. A
/// unit counts a share in proportion to its elements; the shares of all units sum exactly to
/// `bytes`.
/// Threads  any, at any time
class shared_bytes {
 public:
  shared_bytes(std::uint64_t bytes, index_t elements) noexcept
      : bytes_(bytes), elements_(static_cast<std::uint64_t>(elements)) {}

  /// The share of a unit with that number of elements.
  std::uint64_t take(index_t elements) noexcept {
    const auto more = static_cast<std::uint64_t>(elements);
    const std::uint64_t before = taken_.fetch_add(more, std::memory_order_relaxed);
    return first(before + more) - first(before);
  }

 private:
  __extension__ using wide = unsigned __int128;

  // The sum of the shares of the first elements, rounded down.
  std::uint64_t first(std::uint64_t elements) const noexcept {
    return static_cast<std::uint64_t>(wide{bytes_} * elements / elements_);
  }

  const std::uint64_t bytes_;
  const std::uint64_t elements_;
  std::atomic<std::uint64_t> taken_ = 0;
};

/// The work on the units of one pass.
/// Threads  any, for different units; a worker works on one unit at a time
class unit_work {
 public:
  /// `units`, `operands`, `options` and `on` must outlive this object. At each position of the
  /// pass, `written_bytes` are written.
  unit_work(const plan& units, std::span<const loop_operand> operands, const pass_options& options,
            std::size_t written_bytes, unit_body body, executor& on);

  /// Works on a unit that lies in `over`, a plan with the axes of all units.
  void run(index_t number, int worker, const plan& over, std::span<std::byte* const> bases);

  /// Works on a unit whose operands have a plan of their own: `operands` are its elements alone.
  /// `box` is its place in the pass's own axes.
  void run_alone(index_t number, int worker, const region& box,
                 std::span<const loop_operand> operands);

  /// The number of workers that have scratch memory.
  int workers() const noexcept {
    return std::min(scratch_.workers(), nontemporal_buffers_.workers());
  }

  /// Who must be told if the loop over the units fails; null if nobody.
  failure_listener* listener() noexcept { return chain_ ? &*chain_ : nullptr; }

 private:
  void compute(unit& here, const region& box);
  void fold(unit& here, const region& box);
  void scan(unit& here);

  const plan& units_;
  const std::span<const loop_operand> operands_;
  const pass_options& options_;
  const std::size_t written_bytes_;
  const unit_body body_;
  const dims shape_;  // the pass's index space
  counters& count_;
  shared_bytes read_;
  store_choice stores_;
  worker_scratch scratch_;
  worker_scratch nontemporal_buffers_;
  std::optional<unit_groups> groups_;  // with states; then there is either a tree or a chain
  std::optional<fold_tree> tree_;
  std::optional<fold_chain> chain_;
};

}  // namespace shale::parallel
