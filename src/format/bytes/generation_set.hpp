// A set of generations, held as sorted ranges. It answers fast whether a range of generations
// overlaps it: the space map asks this for each of its entries, and there may be as many ranges as
// readers.
#pragma once

#include <cstdint>
#include <vector>

#include "format/bytes/types.hpp"

namespace shale::format {

class generation_set {
 public:
  generation_set() = default;

  /// The generations of all these ranges, which may overlap and come in any order.
  /// Cost     O(n log n)
  explicit generation_set(std::vector<generation_range> ranges);

  /// In order; no two touch.
  const std::vector<generation_range>& ranges() const noexcept { return ranges_; }

  /// Whether the set contains any generation with first <= generation < end.
  /// Cost     O(log n)
  bool overlaps(std::uint64_t first, std::uint64_t end) const noexcept;

 private:
  std::vector<generation_range> ranges_;
};

}  // namespace shale::format
