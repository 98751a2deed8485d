#include "ops/passes/reduction_states.hpp"

#include <algorithm>

#include "ops/kernels/dispatch/dispatch.hpp"
#include "parallel/blocks/block_copy.hpp"

namespace shale::ops {

namespace {

constexpr std::size_t state_alignment = 64;

// How many results of empty states are delivered together. Their states fit in the L2 cache.
constexpr index_t empty_results_at_once = 4096;

}  // namespace

reduction_states::reduction_states(const pass& request, memory_pool& pool)
    : reductions_(request.reductions), pool_(pool) {
  if (request.scan)
    reducers_.push_back(find_reducer(reduction_of(request.scan->kind), request.scan->type));
  for (const auto& reduction : reductions_) {
    reducers_.push_back(find_reducer(reduction.kind, reduction.type));
    read_positions_ = read_positions_ || reducers_.back()->reads_positions;
  }
}

std::size_t reduction_states::offset(std::size_t reduction, index_t results) const noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < reduction; ++i)
    bytes += *checked_align_up(reducers_[i]->state_bytes * static_cast<std::size_t>(results),
                               state_alignment);
  return bytes;
}

storage reduction_states::make(index_t results) const {
  storage made = storage::allocate(offset(count(), results), &pool_);
  for (std::size_t k = 0; k < count(); ++k)
    reducers_[k]->start(made.data() + offset(k, results), results);
  return made;
}

void reduction_states::merge(storage& into, const storage& from, index_t results) const {
  for (std::size_t k = 0; k < count(); ++k)
    reducers_[k]->merge(into.data() + offset(k, results), from.data() + offset(k, results),
                        results);
}

void reduction_states::deliver(const storage& states, const layout& place) const {
  const index_t results = place.size();
  for (std::size_t k = 0; k < count(); ++k) {
    const tensor block = tensor::empty(place.shape(), reducers_[k]->result, &pool_);
    reducers_[k]->finish(states.data() + offset(k, results), const_cast<std::byte*>(block.data()),
                         results, reductions_[k].parameter);
    const tensor& into = reductions_[k].into;
    parallel::copy_elements_here(
        into.as_strided(place.shape(), place.strides(), into.offset() + place.offset()), block);
  }
}

void reduction_states::deliver_empty() const {
  const tensor& first = reductions_[0].into;
  for (index_t begin = 0; begin < first.size(); begin += empty_results_at_once) {
    const index_t results = std::min(first.size() - begin, empty_results_at_once);
    deliver(make(results), layout({results}, {1}, begin));
  }
}

}  // namespace shale::ops
