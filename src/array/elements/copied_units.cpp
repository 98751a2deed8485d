#include "array/elements/copied_units.hpp"

#include <algorithm>

#include "format/bytes/file_layout.hpp"
#include "storage/system/pages.hpp"

namespace shale::arrays {

namespace {

using format::byte_interval;

// The positions of the elements of a view, in order. Axes are sorted by their strides, which are
// positive here, and each stride exceeds all that the axes after it can add. So positions are in the
// order of their indices.
class ordered_positions {
 public:
  explicit ordered_positions(const layout& view) : first_(view.offset()) {
    for (index_t i = 0; i < view.rank(); ++i) {
      const index_t extent = view.shape()[i];
      const index_t stride = view.strides()[i];
      if (extent < 2 || stride == 0) continue;
      if (stride < 0) first_ += (extent - 1) * stride;
      axes_.push_back({stride < 0 ? -stride : stride, extent - 1});
    }
    std::sort(axes_.begin(), axes_.end(),
              [](const axis& a, const axis& b) { return a.stride > b.stride; });
    last_ = first_;
    for (const axis& along : axes_) last_ += along.stride * along.last;
  }

  index_t first() const noexcept { return first_; }
  index_t last() const noexcept { return last_; }

  // The first position that is not below `position`, which is at most `last`.
  index_t at_or_after(index_t position) const {
    if (position <= first_) return first_;
    // The index of the last element that is not behind `position`, axis by axis.
    index_t found = first_;
    index_t next = first_;  // the element after it: the last axis that is not at its end moves on
    for (const axis& along : axes_) {
      const index_t steps = std::min((position - found) / along.stride, along.last);
      if (steps < along.last) next = found + (steps + 1) * along.stride;
      found += steps * along.stride;
    }
    return found == position ? found : next;
  }

 private:
  struct axis {
    index_t stride;
    index_t last;  // the largest index
  };

  index_t first_;
  index_t last_ = 0;
  std::vector<axis> axes_;
};

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

format::range_set touched_units(const layout& view, std::size_t item_bytes,
                                std::uint64_t array_bytes) {
  format::range_set units;
  if (view.empty()) return units;
  const auto items_in_unit = static_cast<index_t>(unit_bytes / item_bytes);
  const ordered_positions positions(view);
  for (index_t at = positions.first();;) {
    const index_t unit = at / items_in_unit;
    const std::uint64_t first = static_cast<std::uint64_t>(unit) * unit_bytes;
    units.unite(first, std::min(first + unit_bytes, array_bytes));
    const index_t behind = (unit + 1) * items_in_unit;
    if (behind > positions.last()) return units;
    at = positions.at_or_after(behind);
  }
}

std::vector<byte_interval> without(const format::range_set& units, const format::range_set& known) {
  std::vector<byte_interval> missing;
  for (const auto& [first, end] : units.ranges())
    for (std::uint64_t at = first; at < end;) {
      const std::uint64_t next = std::min(end, known.end_of_run(at));
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
