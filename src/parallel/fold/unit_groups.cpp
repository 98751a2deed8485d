#include "parallel/fold/unit_groups.hpp"

#include "core/grid.hpp"

namespace shale::parallel {

unit_groups::unit_groups(const plan& units) : units_(units), leaves_(1) {
  for (index_t axis = 0; axis < units.rank(); ++axis)
    if (!keeps(axis)) leaves_ *= units.grid()[axis];
}

unit_groups::place unit_groups::place_of(index_t unit) const {
  const dims at = detail::unravel(unit, units_.grid());
  place result{0, 0};
  for (index_t axis = 0; axis < units_.rank(); ++axis) {
    index_t& number = keeps(axis) ? result.group : result.leaf;
    number = number * units_.grid()[axis] + at[axis];
  }
  return result;
}

index_t unit_groups::results(const region& box) const {
  index_t results = 1;
  for (index_t axis = 0; axis < units_.rank(); ++axis)
    if (keeps(axis)) results *= box.shape[axis];
  return results;
}

dims unit_groups::state_strides(const region& box) const {
  dims strides = dims::filled(units_.rank(), 0);
  index_t next = 1;
  for (index_t axis = units_.rank() - 1; axis >= 0; --axis) {
    if (!keeps(axis)) continue;
    strides[axis] = next;
    next *= box.shape[axis];
  }
  return strides;
}

layout unit_groups::place_of_results(const region& box) const {
  dims shape, strides;
  index_t first = units_.origin_bytes(units_.operands() - 1);
  for (index_t axis = 0; axis < units_.rank(); ++axis) {
    if (!keeps(axis)) continue;
    shape.push_back(box.shape[axis]);
    strides.push_back(result_strides()[axis]);
    first += box.start[axis] * result_strides()[axis];
  }
  return layout(shape, strides, first);
}

}  // namespace shale::parallel
