#include "format/pages/page.hpp"

#include <fmt/format.h>

#include <cstring>

namespace shale::format {
namespace {

constexpr std::size_t reserved_from = 25;  // header bytes after the last field

std::string_view as_text(const std::byte* address, std::size_t bytes) noexcept {
  return {reinterpret_cast<const char*>(address), bytes};
}

void copy(std::byte* to, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
}

}  // namespace

page::page(tree_kind tree, page_kind kind, std::uint8_t level) noexcept {
  bytes_.fill(std::byte{0});
  bytes_[kind_at] = static_cast<std::byte>(kind);
  bytes_[level_at] = static_cast<std::byte>(level);
  bytes_[tree_at] = static_cast<std::byte>(tree);
  set_end(header_bytes);
}

page::page(bytes_view sound_bytes) noexcept {
  std::memcpy(bytes_.data(), sound_bytes.data(), page_bytes);
}

std::optional<std::string> page::problem(bytes_view bytes) {
  const auto kind = static_cast<page_kind>(bytes[kind_at]);
  const auto level = static_cast<std::uint8_t>(bytes[level_at]);
  const auto tree = static_cast<tree_kind>(bytes[tree_at]);
  const std::size_t count = load<std::uint16_t>(bytes.data() + count_at);
  const std::size_t end = load<std::uint32_t>(bytes.data() + end_at);
  if (kind != page_kind::leaf && kind != page_kind::branch)
    return fmt::format("kind {} is neither leaf nor branch", static_cast<int>(kind));
  const bool leaf = kind == page_kind::leaf;
  if (level > level_max || leaf != (level == 0))
    return fmt::format("level {} does not match its kind", level);
  if (!all_zero(bytes.subspan(reserved_from, header_bytes - reserved_from)))
    return "reserved header bytes are set";
  if (count == 0) return "no entries";
  std::size_t expected = header_bytes + count * slot_bytes;
  if (expected > page_bytes || end > page_bytes || end < expected)
    return fmt::format("{} entries do not fit", count);
  const std::size_t cell_header = leaf ? leaf_cell_header_bytes : branch_cell_header_bytes;
  std::string_view previous;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t start = load<std::uint16_t>(bytes.data() + header_bytes + i * slot_bytes);
    if (start != expected || end - start < cell_header)
      return fmt::format("cell {} is not where it must be", i);
    const std::size_t key_bytes = load<std::uint16_t>(bytes.data() + start);
    const std::uint16_t word = load<std::uint16_t>(bytes.data() + start + 2);
    std::size_t value_bytes = 0;
    if (!leaf && word != 0) return fmt::format("reserved bytes of cell {} are set", i);
    if (leaf) value_bytes = (word & overflow_bit) != 0 ? overflow_ref_bytes : word;
    if (leaf && (word & overflow_bit) != 0 && word != overflow_bit)
      return fmt::format("reserved bits of cell {} are set", i);
    // A value of the map that lies outside its page would be released unread when it changes.
    if (leaf && word == overflow_bit && tree == tree_kind::space)
      return fmt::format("cell {} of the space map lies outside its page", i);
    const std::size_t cell = cell_header + key_bytes + value_bytes;
    if (key_bytes > key_bytes_max || cell > end - start || (leaf && cell > cell_bytes_max))
      return fmt::format("cell {} is too long", i);
    const std::string_view key = as_text(bytes.data() + start + cell_header, key_bytes);
    if (!leaf && i == 0 ? !key.empty() : key.empty() || (i > 0 && key <= previous))
      return fmt::format("key {} is out of order", i);
    previous = key;
    expected = start + cell;
  }
  if (expected != end) return "cells end in the wrong place";
  if (!all_zero(bytes.subspan(end))) return "unused bytes are set";
  return std::nullopt;
}

std::size_t page::cell_bytes(std::size_t i) const noexcept {
  const std::size_t end = i + 1 < count() ? cell_at(i + 1) : load<std::uint32_t>(at(end_at));
  return end - cell_at(i);
}

std::size_t page::entry_bytes(std::size_t i) const noexcept { return cell_bytes(i) + slot_bytes; }

std::string_view page::key(std::size_t i) const noexcept {
  const std::size_t cell = cell_at(i);
  const std::size_t header = is_leaf() ? leaf_cell_header_bytes : branch_cell_header_bytes;
  return as_text(at(cell + header), load<std::uint16_t>(at(cell)));
}

bool page::overflows(std::size_t i) const noexcept {
  return (load<std::uint16_t>(at(cell_at(i) + 2)) & overflow_bit) != 0;
}

bytes_view page::value(std::size_t i) const noexcept {
  const std::size_t cell = cell_at(i);
  const std::size_t key_bytes = load<std::uint16_t>(at(cell));
  return {at(cell + leaf_cell_header_bytes + key_bytes), load<std::uint16_t>(at(cell + 2))};
}

overflow_ref page::overflow(std::size_t i) const noexcept {
  const std::size_t cell = cell_at(i);
  const std::byte* const ref = at(cell + leaf_cell_header_bytes + load<std::uint16_t>(at(cell)));
  return {{load<std::uint64_t>(ref), load<std::uint64_t>(ref + 8)}, load_checksum(ref + 16)};
}

page_ref page::child(std::size_t i) const noexcept { return load_page_ref(at(cell_at(i) + 4)); }

void page::set_child(std::size_t i, const page_ref& ref) noexcept {
  store_page_ref(at(cell_at(i) + 4), ref);
}

std::size_t page::lower_bound(std::string_view wanted) const noexcept {
  std::size_t low = 0;
  std::size_t high = count();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (key(middle) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

std::size_t page::child_for(std::string_view wanted) const noexcept {
  const std::size_t i = lower_bound(wanted);
  // The first key is empty, so something is always at or below `wanted`.
  return i < count() && key(i) == wanted ? i : i - 1;
}

// A page begins with a header. The slots follow, one for each entry, and then the cells, in the
// same order and without gaps. Slot k holds the offset of cell k in the page. Free bytes are at the
// end:
//
//   | header | slot 0 … slot n-1 | cell 0 … cell n-1 | zeros |
//                                 ^ cells             ^ end
//
// So all cells begin further back if there is one slot more.

// Makes room for a slot and a cell in front of entry i, and writes that slot. Returns the place of
// the new cell, whose bytes the caller writes. The caller has checked that the page has room.
//   cells i … n-1   move back by a slot and the new cell, and their slots move back by one place
//   cells 0 … i-1   move back by a slot, and their slots stay
// The bytes at the back move first, so that no byte is overwritten before it has moved. Slots are
// rewritten from the last to the i-th for the same reason.
std::byte* page::open_gap(std::size_t i, std::size_t cell_bytes) {
  const std::size_t entries = count();
  const std::size_t end = load<std::uint32_t>(at(end_at));
  const std::size_t split = i < entries ? cell_at(i) : end;
  const std::size_t cells = header_bytes + entries * slot_bytes;
  std::memmove(at(split + slot_bytes + cell_bytes), at(split), end - split);
  std::memmove(at(cells + slot_bytes), at(cells), split - cells);
  for (std::size_t k = entries; k > i; --k)
    store(at(header_bytes + k * slot_bytes),
          static_cast<std::uint16_t>(cell_at(k - 1) + slot_bytes + cell_bytes));
  for (std::size_t k = 0; k < i; ++k)
    store(at(header_bytes + k * slot_bytes), static_cast<std::uint16_t>(cell_at(k) + slot_bytes));
  store(at(header_bytes + i * slot_bytes), static_cast<std::uint16_t>(split + slot_bytes));
  set_count(entries + 1);
  set_end(end + slot_bytes + cell_bytes);
  return at(split + slot_bytes);
}

void page::insert_value(std::size_t i, std::string_view key, bytes_view value) {
  std::byte* const cell = open_gap(i, leaf_cell_header_bytes + key.size() + value.size());
  store(cell, static_cast<std::uint16_t>(key.size()));
  store(cell + 2, static_cast<std::uint16_t>(value.size()));
  copy(cell + leaf_cell_header_bytes, key);
  if (!value.empty())
    std::memcpy(cell + leaf_cell_header_bytes + key.size(), value.data(), value.size());
}

void page::insert_overflow(std::size_t i, std::string_view key, const overflow_ref& ref) {
  std::byte* const cell = open_gap(i, leaf_cell_header_bytes + key.size() + overflow_ref_bytes);
  store(cell, static_cast<std::uint16_t>(key.size()));
  store(cell + 2, overflow_bit);
  copy(cell + leaf_cell_header_bytes, key);
  std::byte* const value = cell + leaf_cell_header_bytes + key.size();
  store(value, ref.range.offset);
  store(value + 8, ref.range.bytes);
  store_checksum(value + 16, ref.checksum);
}

void page::insert_child(std::size_t i, std::string_view key, const page_ref& ref) {
  std::byte* const cell = open_gap(i, branch_cell_header_bytes + key.size());
  store(cell, static_cast<std::uint16_t>(key.size()));
  store(cell + 2, std::uint16_t{0});
  store_page_ref(cell + 4, ref);
  copy(cell + branch_cell_header_bytes, key);
}

// Removes slot i and cell i. This is the reverse of open_gap: cells in front of i move forward by a
// slot, cells after it by a slot and the removed cell. Slots are rewritten first, because the cells
// then move over the place of the last slot. The bytes that become free are set to zero.
void page::erase(std::size_t i) {
  const std::size_t entries = count();
  const std::size_t end = load<std::uint32_t>(at(end_at));
  const std::size_t start = cell_at(i);
  const std::size_t gone = cell_bytes(i);
  const std::size_t cells = header_bytes + entries * slot_bytes;
  for (std::size_t k = 0; k < i; ++k)
    store(at(header_bytes + k * slot_bytes), static_cast<std::uint16_t>(cell_at(k) - slot_bytes));
  for (std::size_t k = i + 1; k < entries; ++k)
    store(at(header_bytes + (k - 1) * slot_bytes),
          static_cast<std::uint16_t>(cell_at(k) - slot_bytes - gone));
  std::memmove(at(cells - slot_bytes), at(cells), start - cells);
  std::memmove(at(start - slot_bytes), at(start + gone), end - start - gone);
  const std::size_t new_end = end - slot_bytes - gone;
  std::memset(at(new_end), 0, end - new_end);
  set_count(entries - 1);
  set_end(new_end);
}

void page::append(const page& other, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    const std::size_t bytes = other.cell_bytes(i);
    std::memcpy(open_gap(count(), bytes), other.at(other.cell_at(i)), bytes);
  }
}

void page::keep(std::size_t count_kept) {
  page kept(tree(), kind(), level());
  kept.stamp(generation(), offset());
  kept.append(*this, 0, count_kept);
  *this = kept;
}

}  // namespace shale::format
