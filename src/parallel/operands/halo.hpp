// Halos of operands, in the axes of a pass: how far they reach around a box, and which elements
// stand for positions beyond the ends of an axis.
//
// Invariants
//   halo.1  every position of a halo is one of the operand's elements or the value of the halo, as
//           halo_mode says, for any width and any extent
#pragma once

#include <vector>

#include "shale/dims.hpp"
#include "shale/halo.hpp"
#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// The widths of a halo, by axis of the pass.
struct operand_halo {
  dims before = {};
  dims after = {};
  halo_mode mode = halo_mode::clipped;
  tensor value = {};  ///< of halo_mode::constant: rank 0, with the dtype of the operand
};

/// The positions of a halo that there are around a box, by axis.
struct halo_extents {
  dims before;
  dims after;
};

/// How far a halo reaches around a box of an index space of that shape.
halo_extents extents_around(const operand_halo& halo, const region& box, const dims& shape);

/// Consecutive positions along an axis that show elements in steps of `step`, beginning with that
/// at `from`.
struct halo_run {
  index_t count;
  index_t from;
  index_t step;           ///< 1, -1, or 0 if all show one element
  bool is_value = false;  ///< they show the value of the halo
};

/// The runs of `count` positions from `first` on, which may lie beyond the ends of an axis of
/// `extent` elements, at least one.
/// Cost     O(runs), of which there are about count / extent
std::vector<halo_run> halo_runs_along(halo_mode mode, index_t extent, index_t first, index_t count);

}  // namespace shale::parallel
