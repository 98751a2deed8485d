#include "shale/slice.hpp"

#include <algorithm>

#include "shale/error.hpp"

namespace shale {

slice_range resolve(const slice& range, index_t length) {
  if (range.step == 0)
    throw error(errc::invalid_argument, "a slice cannot have step 0",
                {"wanted a positive step, or a negative one to walk backwards"});
  // The most negative step cannot be negated. The next one selects the same positions and can.
  const index_t step = std::max(range.step, -std::numeric_limits<index_t>::max());
  const bool backwards = step < 0;

  // The positions at which a walk can begin or end. -1, before the first position, is possible only
  // when walking backwards.
  const index_t lowest = backwards ? -1 : 0;
  const index_t highest = backwards ? length - 1 : length;
  const auto place = [&](const std::optional<index_t>& bound, index_t absent) {
    if (!bound) return absent;
    const index_t from_front = *bound < 0 ? *bound + length : *bound;
    return std::clamp(from_front, lowest, highest);
  };
  const index_t start = place(range.start, backwards ? highest : lowest);
  const index_t stop = place(range.stop, backwards ? lowest : highest);

  const index_t distance = backwards ? start - stop : stop - start;
  if (distance <= 0) return {0, 0, 1};
  return {start, ceil_div(distance, backwards ? -step : step), step};
}

}  // namespace shale
