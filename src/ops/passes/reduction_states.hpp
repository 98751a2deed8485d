// Makes, merges and delivers the states of a pass's reductions, or of its scan. One block of memory
// holds the states of all reductions, one array after the other.
#pragma once

#include <vector>

#include "ops/passes/pass.hpp"
#include "parallel/fold/fold.hpp"

namespace shale::ops {

class reduction_states final : public parallel::fold_states {
 public:
  /// The states of the reductions of a pass, or of its scan. The pass and the pool must outlive
  /// this object.
  reduction_states(const pass& request, memory_pool& pool);

  std::size_t count() const noexcept { return reducers_.size(); }
  const reducer& at(std::size_t reduction) const noexcept { return *reducers_[reduction]; }

  /// Whether at least one of the reductions reads the positions of values.
  bool read_positions() const noexcept { return read_positions_; }

  /// The byte offset of a reduction's states in memory for `results` results.
  std::size_t offset(std::size_t reduction, index_t results) const noexcept;

  storage make(index_t results) const override;
  void merge(storage& into, const storage& from, index_t results) const override;
  void deliver(const storage& states, const layout& place) const override;

  /// Delivers the results of empty states, for a pass without elements.
  void deliver_empty() const;

 private:
  const std::vector<pass_reduction>& reductions_;
  memory_pool& pool_;
  std::vector<const reducer*> reducers_;
  bool read_positions_ = false;
};

}  // namespace shale::ops
