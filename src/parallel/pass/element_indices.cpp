#include "parallel/pass/element_indices.hpp"

namespace shale::parallel {

detail::block_indices indices_of(const unit& here, const block_position& position, index_t rank) {
  const plan& over = here.over;
  detail::block_indices result{.first = here.origin ? *here.origin : dims::filled(rank, 0)};
  for (index_t axis = 0; axis < over.rank(); ++axis) {
    const index_t own = over.own_axes()[axis];
    if (own < 0) continue;  // the only axis of an index space of rank 0
    const bool backwards = over.directions()[axis] < 0;
    const index_t place = position.start[axis];
    result.first[own] += backwards ? over.shape()[axis] - 1 - place : place;
    const index_t from_last = over.rank() - 1 - axis;
    if (from_last == 0) result.inner = {own, backwards ? -1 : 1};
    if (from_last == 1) result.outer = {own, backwards ? -1 : 1};
  }
  return result;
}

}  // namespace shale::parallel
