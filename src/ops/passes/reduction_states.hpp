// Makes, merges and delivers the states of a pass's reductions. One block of memory holds the
// states of all reductions, one array after the other.
#pragma once

#include <vector>

#include "ops/passes/pass.hpp"
#include "parallel/fold/fold.hpp"

namespace shale::ops {

class reduction_states final : public parallel::fold_states {
 public:
  /// `reductions` and the pool must outlive this object.
  reduction_states(const std::vector<pass_reduction>& reductions, memory_pool& pool);

  std::size_t count() const noexcept { return reducers_.size(); }
  const reducer& at(std::size_t reduction) const noexcept { return *reducers_[reduction]; }

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
};

}  // namespace shale::ops
