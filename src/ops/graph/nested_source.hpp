// Defines the interface of tile sources whose loads evaluate expressions, and limits how deep they
// nest.
//
// Such a load runs on the stack of the evaluation that needs the tile. If its expression reads
// another source of this kind, that one's load runs on the same stack, and so on. The *depth* of a
// source is the greatest number of nested evaluations that its load may have on the stack. It is 1
// if the expression reads no source of this kind.
//
// Invariants
//   nested.1  no source is deeper than nested_depth_max. An operand that reads a source of this
//             depth is computed as a whole before it becomes part of another source
//             (make_operand_of_parts)
#pragma once

#include <algorithm>
#include <variant>
#include <vector>

#include "ops/graph/graph.hpp"

namespace shale::ops {

/// The loads of a source of this depth, and the evaluation around them, fit in the stack that
/// docs/caveats.md states. Each level takes about 27 KiB.
inline constexpr int nested_depth_max = 2;

/// A second base class of such a source, if expressions can read it.
class nested_source {
 public:
  /// 1 to nested_depth_max.
  virtual int depth() const noexcept = 0;

 protected:
  ~nested_source() = default;
};

/// The largest depth of the sources that are leaves among the nodes; 0 if there are none.
inline int deepest_source(const std::vector<node_ref>& nodes) noexcept {
  int deepest = 0;
  for (const node_ref& value : nodes) {
    const auto* leaf = std::get_if<detail::source_leaf>(&value->content);
    if (leaf == nullptr) continue;
    const auto* const nested = dynamic_cast<const nested_source*>(leaf->source.get());
    if (nested != nullptr) deepest = std::max(deepest, nested->depth());
  }
  return deepest;
}

}  // namespace shale::ops
