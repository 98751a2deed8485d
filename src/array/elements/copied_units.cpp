#include "array/elements/copied_units.hpp"

#include <algorithm>

#include "format/bytes/file_layout.hpp"
#include "storage/system/pages.hpp"

namespace shale::arrays {

namespace {

using format::byte_interval;

// Collects the extents of an array. Those that follow each other in the file become one, if both are
// new or both are old, and if the alignment of the joined one allows that.
class extent_list {
 public:
  void add(const format::extent& piece, bool is_new) {
    if (!extents_.empty() && is_new == last_is_new_ && extents_.back().end() == piece.offset) {
      const format::extent joined{extents_.back().offset, extents_.back().bytes + piece.bytes};
      const std::uint64_t alignment = format::dense_alignment(joined.bytes);
      if (joined.offset % alignment == 0 && joined.bytes % alignment == 0) {
        extents_.back() = joined;
        return;
      }
    }
    extents_.push_back(piece);
    last_is_new_ = is_new;
  }

  std::vector<format::extent> take() { return std::move(extents_); }

 private:
  std::vector<format::extent> extents_;
  bool last_is_new_ = false;
};

}  // namespace

byte_interval touched_units(const layout& view, std::size_t item_bytes, std::uint64_t array_bytes) {
  const auto positions = view.extent();
  if (!positions) return {};
  const auto unit_of = [&](index_t position) {
    return static_cast<std::uint64_t>(position) * item_bytes / unit_bytes;
  };
  return {unit_of(positions->first) * unit_bytes,
          std::min((unit_of(positions->last) + 1) * unit_bytes, array_bytes)};
}

std::vector<byte_interval> without(const byte_interval& units, const format::range_set& known) {
  std::vector<byte_interval> missing;
  for (std::uint64_t at = units.first; at < units.end;) {
    const std::uint64_t next = std::min(units.end, known.end_of_run(at));
    if (!known.contains(at, next)) missing.push_back({at, next});
    at = next;
  }
  return missing;
}

std::vector<format::extent> extents_after(const format::dense_layout& layout, std::uint64_t bytes,
                                          std::span<const moved_bytes> moved,
                                          const format::range_set& copied) {
  const dense_places places(layout.extents);
  extent_list extents;
  std::uint64_t at = 0;
  const auto keep_until = [&](std::uint64_t end) {
    for (const auto& piece : places.pieces(at, end - at)) {
      extents.add(piece, copied.contains(at, at + piece.bytes));
      at += piece.bytes;
    }
  };
  for (const auto& [range, to] : moved) {
    keep_until(range.first);
    extents.add(to, true);
    at = range.end;
  }
  keep_until(bytes);
  return extents.take();
}

format::byte_interval cheapest_run(const format::dense_layout& layout, std::uint64_t bytes,
                                   std::size_t count) {
  std::vector<std::uint64_t> ends{0};  // of the extents, in the array
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
