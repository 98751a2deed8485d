#include "array/elements/unit_table.hpp"

#include <algorithm>
#include <iterator>

#include "format/bytes/file_layout.hpp"

namespace shale::arrays {

using format::byte_interval;
using format::extent;

unit_table::unit_table(std::span<const extent> extents, std::span<const byte_interval> fresh) {
  for (const extent& place : extents) {
    pieces_.emplace_hint(pieces_.end(), bytes_, piece{place, false});
    bytes_ += place.bytes;
  }
  for (const byte_interval& part : fresh) {
    cut(part.first);
    cut(part.end);
    for (auto at = pieces_.lower_bound(part.first); at != pieces_.end() && at->first < part.end;
         ++at)
      at->second.is_new = true;
  }
  for (auto at = pieces_.begin(); at != pieces_.end();)
    if (!join_with_next(at)) ++at;
  has_new_bytes_ = !fresh.empty();
}

// The piece that contains the byte; pieces_.end() if the byte lies behind the last one.
unit_table::piece_map::const_iterator unit_table::containing(std::uint64_t byte) const {
  return byte < bytes_ ? std::prev(pieces_.upper_bound(byte)) : pieces_.end();
}

bool unit_table::is_new(std::uint64_t byte) const {
  const auto found = containing(byte);
  return found != pieces_.end() && found->second.is_new;
}

std::vector<byte_interval> unit_table::runs(const byte_interval& range, bool of_new) const {
  std::vector<byte_interval> found;
  if (range.first == range.end) return found;
  for (auto at = containing(range.first); at != pieces_.end() && at->first < range.end; ++at) {
    if (at->second.is_new != of_new) continue;
    const std::uint64_t first = std::max(range.first, at->first);
    const std::uint64_t end = std::min(range.end, at->first + at->second.place.bytes);
    if (!found.empty() && found.back().end == first) found.back().end = end;
    else found.push_back({first, end});
  }
  return found;
}

std::vector<byte_interval> unit_table::old_parts(const byte_interval& range) const {
  return runs(range, false);
}

std::vector<byte_interval> unit_table::new_parts() const { return runs({0, bytes_}, true); }

std::vector<extent> unit_table::pieces(const byte_interval& range) const {
  std::vector<extent> found;
  for (auto at = containing(range.first); at != pieces_.end() && at->first < range.end; ++at) {
    const extent& place = at->second.place;
    const std::uint64_t first = std::max(range.first, at->first);
    const std::uint64_t end = std::min(range.end, at->first + place.bytes);
    found.push_back({place.offset + (first - at->first), end - first});
  }
  return found;
}

std::vector<extent> unit_table::extents() const {
  std::vector<extent> all;
  all.reserve(pieces_.size());
  for (const auto& entry : pieces_) all.push_back(entry.second.place);
  return all;
}

std::vector<extent> unit_table::new_extents() const {
  std::vector<extent> found;
  for (const auto& entry : pieces_)
    if (entry.second.is_new) found.push_back(entry.second.place);
  return found;
}

// Cuts a piece in two, so that one begins at that byte. All bytes stay where they are, and stay new
// or old.
void unit_table::cut(std::uint64_t byte) {
  const auto found = containing(byte);
  if (found == pieces_.end() || found->first == byte) return;
  const std::uint64_t head = byte - found->first;
  const piece whole = found->second;
  const extent rest{whole.place.offset + head, whole.place.bytes - head};
  const auto made = pieces_.emplace_hint(std::next(found), byte, piece{rest, whole.is_new});
  std::prev(made)->second.place.bytes = head;
}

void unit_table::move(std::span<const moved_bytes> moved) {
  for (const moved_bytes& part : moved) {
    cut(part.range.first);
    cut(part.range.end);
  }
  // Nothing fails from here on.
  for (const moved_bytes& part : moved) {
    const auto first = pieces_.find(part.range.first);
    pieces_.erase(std::next(first), pieces_.lower_bound(part.range.end));
    first->second = {part.to, true};
    join(first);
  }
  has_new_bytes_ = has_new_bytes_ || !moved.empty();
}

// Joins a piece with its neighbours.
void unit_table::join(piece_map::iterator first) noexcept {
  join_with_next(first);
  if (first != pieces_.begin()) join_with_next(std::prev(first));
}

// Joins a piece with the next one if they follow each other in the file, if both are new or both
// are old, and if the alignment of the joined piece allows it. Returns whether it has joined them.
bool unit_table::join_with_next(piece_map::iterator first) noexcept {
  const auto next = std::next(first);
  if (next == pieces_.end()) return false;
  const extent& place = first->second.place;
  const bool of_one_kind = next->second.is_new == first->second.is_new;
  if (!of_one_kind || place.end() != next->second.place.offset) return false;
  const extent joined{place.offset, place.bytes + next->second.place.bytes};
  const std::uint64_t alignment = format::dense_alignment(joined.bytes);
  if (joined.offset % alignment != 0 || joined.bytes % alignment != 0) return false;
  first->second.place = joined;
  pieces_.erase(next);
  return true;
}

}  // namespace shale::arrays
