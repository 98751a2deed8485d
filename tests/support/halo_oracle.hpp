// Halos position by position, by steps that lead from a position to the axis.
#pragma once

#include <vector>

#include "shale/halo.hpp"
#include "support/index_oracle.hpp"

namespace shale::test {

inline constexpr halo_mode modes_beyond_the_ends[] = {halo_mode::constant, halo_mode::edge,
                                                      halo_mode::reflect, halo_mode::symmetric,
                                                      halo_mode::wrap};

/// The position on the axis, which has `extent` elements, of the element that is shown at index
/// `at`. Returns -1 if the constant value is shown there, or nothing, because the halo is clipped.
inline std::int64_t position_shown(halo_mode mode, std::int64_t extent, std::int64_t at) {
  while (at < 0 || at >= extent) {
    const bool in_front = at < 0;
    switch (mode) {
      case halo_mode::clipped:
      case halo_mode::constant:
        return -1;
      case halo_mode::edge:
        return in_front ? 0 : extent - 1;
      case halo_mode::reflect:
        if (extent == 1) return 0;
        at = in_front ? -at : 2 * (extent - 1) - at;
        break;
      case halo_mode::symmetric:
        at = in_front ? -at - 1 : 2 * extent - 1 - at;
        break;
      case halo_mode::wrap:
        at += in_front ? extent : -extent;
        break;
    }
  }
  return at;
}

/// For each index of `shape`: the sum of all elements that a halo of those widths shows around it,
/// each times its number among them, beginning with 1. `elements` are row-major.
template <class T>
std::vector<std::int64_t> sums_around(const std::vector<T>& elements, const index_list& shape,
                                      const std::vector<halo_width>& widths, halo_mode mode,
                                      std::int64_t value) {
  const index_oracle numbers = index_oracle::row_major(shape);
  index_list window;
  for (const halo_width& width : widths) window.push_back(width.before + 1 + width.after);
  std::vector<std::int64_t> sums;
  for_each_index(shape, [&](const index_list& at) {
    std::int64_t sum = 0, number = 0;
    for_each_index(window, [&](const index_list& place) {
      ++number;
      index_list from(at.size());
      bool beyond = false;
      for (std::size_t axis = 0; axis < at.size(); ++axis) {
        from[axis] =
            position_shown(mode, shape[axis], at[axis] + place[axis] - widths[axis].before);
        beyond = beyond || from[axis] < 0;
      }
      if (beyond && mode == halo_mode::clipped) return;
      sum +=
          number *
          (beyond ? value
                  : static_cast<std::int64_t>(elements[static_cast<std::size_t>(numbers[from])]));
    });
    sums.push_back(sum);
  });
  return sums;
}

}  // namespace shale::test
