#include "array/elements/dense_places.hpp"

#include <algorithm>
#include <cstddef>

namespace shale::arrays {

dense_places::dense_places(std::span<const format::extent> extents) : extents_(extents) {
  ends_.reserve(extents.size());
  std::uint64_t end = 0;
  for (const format::extent& next : extents) {
    end += next.bytes;
    ends_.push_back(end);
  }
}

std::vector<format::extent> dense_places::pieces(std::uint64_t offset, std::uint64_t bytes) const {
  std::vector<format::extent> found;
  const auto first = std::upper_bound(ends_.begin(), ends_.end(), offset);
  for (auto i = static_cast<std::size_t>(first - ends_.begin()); bytes > 0 && i < ends_.size();
       ++i) {
    const format::extent& here = extents_[i];
    const std::uint64_t inside = offset - (ends_[i] - here.bytes);
    const std::uint64_t taken = std::min(bytes, here.bytes - inside);
    found.push_back({here.offset + inside, taken});
    offset += taken;
    bytes -= taken;
  }
  return found;
}

}  // namespace shale::arrays
