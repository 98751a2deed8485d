#include "array/elements/copied_units.hpp"

#include <algorithm>

#include "format/bytes/file_layout.hpp"
#include "storage/system/pages.hpp"

namespace shale::arrays {

using format::byte_interval;

byte_interval touched_units(const layout& view, std::size_t item_bytes, std::uint64_t array_bytes) {
  const auto positions = view.extent();
  if (!positions) return {};
  const auto unit_of = [&](index_t position) {
    return static_cast<std::uint64_t>(position) * item_bytes / unit_bytes;
  };
  return {unit_of(positions->first) * unit_bytes,
          std::min((unit_of(positions->last) + 1) * unit_bytes, array_bytes)};
}

format::byte_interval cheapest_run(const format::dense_layout& layout, std::uint64_t bytes,
                                   std::size_t count) {
  std::vector<std::uint64_t> ends{0};  // where the extents end in the array, after a first 0
  for (const auto& piece : dense_places(layout.extents).pieces(0, bytes))
    ends.push_back(ends.back() + piece.bytes);
  format::byte_interval best{0, bytes};
  for (std::size_t i = 0; i + count < ends.size(); ++i)
    if (ends[i + count] - ends[i] < best.end - best.first) best = {ends[i], ends[i + count]};
  return best;
}

bool can_be_cut(const format::dense_layout& layout) noexcept {
  return shale::detail::system_page_bytes() <= format::page_bytes &&
         std::all_of(layout.extents.begin(), layout.extents.end(), [&](const auto& piece) {
           return &piece == &layout.extents.back() || piece.bytes % unit_bytes == 0;
         });
}

}  // namespace shale::arrays
