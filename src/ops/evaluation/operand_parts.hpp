// An operand that is evaluated part by part, by calls inside of the loads of a tile source. Parts
// may overlap. The operand may be larger than memory.
#pragma once

#include "ops/graph/graph.hpp"
#include "parallel/mapped/mapped_bytes.hpp"
#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// If the pages of the mapped tensors take more than half of the budget, they are dropped from the
/// memory of this process after each part is evaluated.
class operand_parts {
 public:
  /// `operand` reads no stages.
  explicit operand_parts(node_ref operand);

  const node_ref& operand() const noexcept { return operand_; }

  /// The elements in a box, without gaps. A tensor in memory is read in place.
  /// Throws   as `eval`
  /// Threads  any
  tensor held(const region& box) const;

  /// Evaluates the elements in a box into `out`, which has its shape. Converts to its dtype.
  /// Throws   as `eval_into`
  /// Threads  any
  void evaluate_into(const tensor& out, const region& box) const;

 private:
  void release_pages(const node_ref& part) const;

  node_ref operand_;
  parallel::mapped_bytes mapped_;  // of the tensors that the operand reads in place
};

/// For each axis, the longest tile of the sources that a node reads; 1 if it reads none.
dims extents_of_sources(const node_ref& value);

}  // namespace shale::ops
