// Decides whether two operands share bytes. Two operands alias if they have the same addresses, or
// if two mappings show one range of one file at different addresses.
#pragma once

#include "shale/tensor.hpp"

namespace shale::parallel {

/// Whether every index names the same bytes in both tensors. Two private (copy-on-write) mappings
/// of one file count as different, because a store into one of them does not change the other.
/// Cost     O(rank), and O(extents) if two owners map one file; allocates nothing
bool same_elements(const tensor& written, const tensor& other);

/// Whether a store into an element of `written` may change an element of `other`. The answer is
/// true if the search is too expensive to decide. A store into a private (copy-on-write) mapping
/// changes no other mapping.
/// Cost     O(rank), and the bounded search of `overlaps` if the address ranges meet. If two owners
///          map one file, the search runs for each pair of extents. Allocates nothing
bool may_overlap(const tensor& written, const tensor& other);

}  // namespace shale::parallel
