#include "parallel/ways/haloed_box.hpp"

#include <vector>

#include "core/grid.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "parallel/executor/executor_state.hpp"
#include "tensor/parts.hpp"

namespace shale::parallel {

namespace {

// The place of a part of haloed elements, and the runs that it shows, by axis.
struct haloed_part {
  region place;
  std::vector<halo_run> runs;

  bool is_value() const noexcept {
    for (const halo_run& run : runs)
      if (run.is_value) return true;
    return false;
  }

  bool repeats(index_t axis) const noexcept {
    return runs[static_cast<std::size_t>(axis)].step == 0;
  }
};

// A run, and its first position among the haloed elements.
struct placed_run {
  halo_run run;
  index_t place;
};

std::vector<placed_run> placed_runs(halo_mode mode, index_t extent, index_t first, index_t count) {
  std::vector<placed_run> placed;
  index_t next = 0;
  for (const halo_run& run : halo_runs_along(mode, extent, first, count)) {
    placed.push_back({run, next});
    next += run.count;
  }
  return placed;
}

// Copies the layer at position 0 along the axes that repeat it to all other positions.
void repeat_layers(const haloed_part& part, const tensor& values) {
  const index_t rank = values.rank();
  for (index_t axis = 0; axis < rank; ++axis) {
    if (!part.repeats(axis) || values.shape()[axis] == 1) continue;
    tensor wide = values;
    for (index_t later = axis + 1; later < rank; ++later)
      if (part.repeats(later)) wide = wide.narrow(later, 0, 1);
    const tensor rest = wide.narrow(axis, 1, wide.shape()[axis] - 1);
    copy_elements_here(rest, wide.narrow(axis, 0, 1).broadcast_to(rest.shape()));
  }
}

void fill(const haloed_part& part, const operand_halo& halo, const tensor& room,
          const box_reader& elements) {
  const tensor values = detail::narrowed(room, part.place);
  if (part.is_value()) return copy_elements_here(values, halo.value.broadcast_to(values.shape()));
  tensor into = values;
  region box{dims(), into.shape()};
  for (index_t axis = 0; axis < into.rank(); ++axis) {
    const halo_run& run = part.runs[static_cast<std::size_t>(axis)];
    if (run.step == 0) {
      into = into.narrow(axis, 0, 1);
      box.shape[axis] = 1;
    }
    if (run.step < 0) into = into.flip({axis});
    box.start.push_back(run.step < 0 ? run.from - (run.count - 1) : run.from);
  }
  elements.read_into(box, into);
  repeat_layers(part, values);
}

region with_halo_around(const region& box, const halo_extents& around) {
  region wide = box;
  for (index_t axis = 0; axis < box.shape.size(); ++axis) {
    wide.start[axis] -= around.before[axis];
    wide.shape[axis] += around.before[axis] + around.after[axis];
  }
  return wide;
}

bool lies_inside(const region& box, const dims& shape) {
  for (index_t axis = 0; axis < shape.size(); ++axis)
    if (box.start[axis] < 0 || box.start[axis] + box.shape[axis] > shape[axis]) return false;
  return true;
}

}  // namespace

tensor in_place_reader::read(const region& box) const { return detail::narrowed(values_, box); }

void in_place_reader::read_into(const region& box, const tensor& into) const {
  copy_elements_here(into, read(box));
}

tensor haloed_box(const operand_halo& halo, const region& box, const dims& shape, dtype type,
                  const box_reader& elements, const executor& on) {
  const region wide = with_halo_around(box, extents_around(halo, box, shape));
  if (lies_inside(wide, shape)) return elements.read(wide);
  const tensor room = tensor::empty(wide.shape, type, &on.pool());
  std::vector<std::vector<placed_run>> runs;
  dims counts;
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    runs.push_back(placed_runs(halo.mode, shape[axis], wide.start[axis], wide.shape[axis]));
    counts.push_back(static_cast<index_t>(runs.back().size()));
  }
  dims at = dims::filled(shape.size(), 0);
  do {
    require_not_cancelled(on);
    haloed_part part;
    for (std::size_t axis = 0; axis < runs.size(); ++axis) {
      const auto& [run, place] =
          runs[axis][static_cast<std::size_t>(at[static_cast<index_t>(axis)])];
      part.runs.push_back(run);
      part.place.start.push_back(place);
      part.place.shape.push_back(run.count);
    }
    fill(part, halo, room, elements);
  } while (detail::advance(at, counts));
  return room;
}

tensor own_part(const tensor& haloed, const operand_halo& halo, const region& box,
                const dims& shape) {
  return detail::narrowed(haloed, {extents_around(halo, box, shape).before, box.shape});
}

}  // namespace shale::parallel
