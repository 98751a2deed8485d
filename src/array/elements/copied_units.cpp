#include "array/elements/copied_units.hpp"

#include <algorithm>

#include "format/bytes/file_layout.hpp"
#include "storage/system/pages.hpp"

namespace shale::arrays {

using format::byte_interval;

byte_interval touched_units(const layout& view, std::size_t item_bytes, std::uint64_t array_bytes,
                            std::uint64_t divided_at) {
  const auto positions = view.extent();
  if (!positions) return {};
  const std::uint64_t first = static_cast<std::uint64_t>(positions->first) * item_bytes;
  const std::uint64_t last = static_cast<std::uint64_t>(positions->last) * item_bytes;
  const std::uint64_t unit = first / unit_bytes * unit_bytes;
  return {first >= divided_at ? std::max(unit, divided_at) : unit,
          std::min((last / unit_bytes + 1) * unit_bytes, array_bytes)};
}

std::uint64_t kept_by_append(const format::dense_layout& layout, std::uint64_t bytes_before,
                             std::uint64_t bytes_after) {
  const std::uint64_t unit = bytes_before / unit_bytes * unit_bytes;
  if (bytes_after >= unit + unit_bytes) return unit;
  std::uint64_t kept = bytes_before / division_bytes * division_bytes;
  const auto pieces = dense_places(layout.extents).pieces(unit, kept - unit);
  for (auto last = pieces.rbegin(); last != pieces.rend() && last->bytes <= bytes_after - kept;
       ++last)
    kept -= last->bytes;
  return kept;
}

std::vector<byte_interval> cut_at_units(const std::vector<byte_interval>& ranges,
                                        std::uint64_t bytes) {
  std::vector<byte_interval> cut;
  for (const byte_interval& range : ranges) {
    byte_interval units = range;
    if (range.end - range.first >= format::large_extent_bytes) {
      units.first = shale::detail::align_up(range.first, unit_bytes);
      if (range.end != bytes) units.end = shale::detail::align_down(range.end, unit_bytes);
    }
    for (const byte_interval& part :
         {byte_interval{range.first, units.first}, units, byte_interval{units.end, range.end}})
      if (part.first < part.end) cut.push_back(part);
  }
  return cut;
}

format::byte_interval cheapest_run(const format::dense_layout& layout, std::uint64_t bytes,
                                   std::size_t count) {
  std::vector<std::uint64_t> ends{0};  // where the extents end in the array, after a first 0
  for (const auto& piece : dense_places(layout.extents).pieces(0, bytes))
    ends.push_back(ends.back() + piece.bytes);
  format::byte_interval best{0, bytes};
  for (std::size_t i = 0; i + count < ends.size(); ++i) {
    const format::byte_interval run{ends[i], ends[i + count]};
    if (run.end % unit_bytes != 0 && run.end != bytes) continue;
    if (run.end - run.first < best.end - best.first) best = run;
  }
  return best;
}

bool can_be_cut(const format::dense_layout& layout, std::uint64_t bytes) noexcept {
  const std::uint64_t last_unit = bytes == 0 ? 0 : (bytes - 1) / unit_bytes * unit_bytes;
  std::uint64_t end = 0;
  return shale::detail::system_page_bytes() <= format::page_bytes &&
         std::all_of(layout.extents.begin(), layout.extents.end(), [&](const auto& piece) {
           end += piece.bytes;
           return end > last_unit || end % unit_bytes == 0;
         });
}

}  // namespace shale::arrays
