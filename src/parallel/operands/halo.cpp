#include "parallel/operands/halo.hpp"

#include <algorithm>

namespace shale::parallel {

namespace {

constexpr index_t endless = index_t{1} << 62;

// The run of a pattern that begins at position `at` and is not cut. Positions inside the axis are
// elements in every mode.
halo_run run_at(halo_mode mode, index_t extent, index_t at) {
  if (at >= 0 && at < extent) return {extent - at, at, 1};
  const index_t beyond = at < 0 ? -at : endless;
  if (mode == halo_mode::constant) return {beyond, 0, 0, true};
  if (mode == halo_mode::edge || extent == 1) return {beyond, at < 0 ? 0 : extent - 1, 0};
  // The pattern repeats itself: once forwards, and once backwards if it is reflected. A reflection
  // at the end elements shows each of these once.
  const index_t backwards = mode == halo_mode::wrap        ? 0
                            : mode == halo_mode::symmetric ? extent
                                                           : extent - 2;
  const index_t period = extent + backwards;
  const index_t place = at % period + (at % period < 0 ? period : 0);
  if (place < extent) return {extent - place, place, 1};
  const index_t left = period - place;
  return {left, mode == halo_mode::symmetric ? left - 1 : left, -1};
}

}  // namespace

halo_extents extents_around(const operand_halo& halo, const region& box, const dims& shape) {
  halo_extents around{halo.before, halo.after};
  if (halo.mode != halo_mode::clipped) return around;
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t behind = shape[axis] - box.start[axis] - box.shape[axis];
    around.before[axis] = std::min(around.before[axis], box.start[axis]);
    around.after[axis] = std::min(around.after[axis], behind);
  }
  return around;
}

std::vector<halo_run> halo_runs_along(halo_mode mode, index_t extent, index_t first,
                                      index_t count) {
  std::vector<halo_run> runs;
  for (index_t done = 0; done < count; done += runs.back().count) {
    runs.push_back(run_at(mode, extent, first + done));
    runs.back().count = std::min(runs.back().count, count - done);
  }
  return runs;
}

}  // namespace shale::parallel
