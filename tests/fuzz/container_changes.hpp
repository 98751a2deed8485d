// Changes bytes of a sound container, and corrects every checksum that covers them. With correct
// checksums, the changes reach the code that reads the fields.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "format/bytes/checksum.hpp"
#include "format/pages/header.hpp"

namespace shale::fuzz {

using content = std::vector<std::byte>;

template <class Number>
inline Number number_at(const content& bytes, std::size_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// A checksum in the file and the range that it covers. If `reference` is set, the file stores the
/// offset of the range there. The length follows it if `has_length`; else the range is one page.
/// Both are read from the file, so that a changed reference is followed.
struct site {
  std::size_t offset = 0;
  std::size_t bytes = 8;  // 8 or 16
  format::extent range;
  std::size_t reference = 0;
  bool has_length = false;
};

inline format::bytes_view part(const content& bytes, const format::extent& range) {
  return format::bytes_view(bytes).subspan(range.offset, range.bytes);
}

inline std::array<std::byte, 16> sum_of(const content& bytes, const format::extent& range,
                                        std::size_t width) {
  std::array<std::byte, 16> sum{};
  if (width == 8) {
    const std::uint64_t low = format::checksum_data(part(bytes, range));
    std::memcpy(sum.data(), &low, 8);
  } else {
    const format::checksum128 wide = format::checksum_metadata(part(bytes, range));
    std::memcpy(sum.data(), &wide.low, 8);
    std::memcpy(sum.data() + 8, &wide.high, 8);
  }
  return sum;
}

/// The position of a checksum of `range` near `around`. It has `width` bytes. Returns 0 if there is
/// none.
inline std::size_t find_sum(const content& bytes, const format::extent& range, std::size_t width,
                            std::size_t around, std::size_t reach) {
  const auto sum = sum_of(bytes, range, width);
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(around);
  const auto last =
      bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), around + reach));
  const auto found =
      std::search(first, last, sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(width));
  return found == last ? 0 : static_cast<std::size_t>(found - bytes.begin());
}

/// Finds every checksum in a sound container without a parser.
class checksums {
 public:
  explicit checksums(const content& sound) {
    find_references(sound);
    find_data(sound);
    order();
  }

  const std::vector<site>& sites() const { return sites_; }

  void correct(content& bytes) const {
    for (const site& found : sites_) {
      format::extent range = found.range;
      if (found.reference != 0 && found.reference + 8 <= bytes.size())
        range.offset = number_at<std::uint64_t>(bytes, found.reference);
      if (found.has_length && found.reference + 16 <= bytes.size())
        range.bytes = number_at<std::uint64_t>(bytes, found.reference + 8);
      if (found.offset + found.bytes > bytes.size()) continue;
      if (range.offset > bytes.size() || range.bytes > bytes.size() - range.offset) continue;
      const auto sum = sum_of(bytes, range, found.bytes);
      std::memcpy(bytes.data() + found.offset, sum.data(), found.bytes);
    }
    correct_superblocks(bytes);
  }

 private:
  // Finds numbers that look like the offset of an extent and are followed by the checksum of that
  // extent.
  void find_references(const content& sound) {
    for (std::size_t place = 0; place + 48 <= sound.size(); ++place) {
      const auto offset = number_at<std::uint64_t>(sound, place);
      if (offset < format::first_extent_offset || offset >= sound.size() || offset % 64 != 0)
        continue;
      const auto length = number_at<std::uint64_t>(sound, place + 8);
      add(sound, {offset, format::page_bytes}, 16, place, 48);
      if (length != 0 && length < sound.size()) {
        add(sound, {offset, length}, 16, place, 256, true);
        add(sound, {offset, length}, 8, place, 48, true);
      }
    }
  }

  // Finds the checksums of dense data, which lie in extents of their own.
  void find_data(const content& sound) {
    for (std::size_t place = format::first_extent_offset; place + 16 <= sound.size(); ++place) {
      const auto offset = number_at<std::uint64_t>(sound, place);
      const auto length = number_at<std::uint64_t>(sound, place + 8);
      if (offset % 4096 != 0 || offset < format::first_extent_offset || length == 0) continue;
      if (offset > sound.size() || length > sound.size() - offset) continue;
      const std::size_t found =
          find_sum(sound, {offset, length}, 8, format::first_extent_offset, sound.size());
      if (found != 0) sites_.push_back({found, 8, {offset, length}});
    }
  }

  void add(const content& sound, const format::extent& range, std::size_t width, std::size_t offset,
           std::size_t reach, bool has_length = false) {
    if (range.offset + range.bytes > sound.size()) return;
    if (const std::size_t found = find_sum(sound, range, width, offset, reach))
      sites_.push_back({found, width, range, offset, has_length});
  }

  // A checksum is corrected after the checksums that lie in its range.
  void order() {
    std::sort(sites_.begin(), sites_.end(), [](const site& a, const site& b) {
      return std::tie(a.offset, a.range.offset) < std::tie(b.offset, b.range.offset);
    });
    const auto same = [](const site& a, const site& b) { return a.offset == b.offset; };
    sites_.erase(std::unique(sites_.begin(), sites_.end(), same), sites_.end());
    std::vector<site> ordered;
    std::vector<bool> visited(sites_.size());
    for (std::size_t i = 0; i < sites_.size(); ++i) visit(i, visited, ordered);
    sites_ = std::move(ordered);
  }

  void visit(std::size_t number, std::vector<bool>& visited, std::vector<site>& ordered) {
    if (visited[number]) return;
    visited[number] = true;
    const format::extent& range = sites_[number].range;
    for (std::size_t i = 0; i < sites_.size(); ++i)
      if (sites_[i].offset >= range.offset && sites_[i].offset < range.end())
        visit(i, visited, ordered);
    ordered.push_back(sites_[number]);
  }

  static void correct_superblocks(content& bytes) {
    for (const std::uint64_t slot : format::superblock_offsets) {
      if (slot + 512 > bytes.size()) continue;
      const auto sector = bytes.begin() + static_cast<std::ptrdiff_t>(slot);
      content covered(sector + 16, sector + 32);
      covered.insert(covered.end(), sector + 12, sector + 16);
      covered.insert(covered.end(), sector, sector + 12);
      covered.insert(covered.end(), sector + 32, sector + 496);
      const auto sum = sum_of(covered, {0, covered.size()}, 16);
      std::copy(sum.begin(), sum.end(), sector + 496);
    }
    if (bytes.size() < format::page_bytes) return;
    const auto sum = sum_of(bytes, {0, format::page_bytes - 16}, 16);
    std::copy(sum.begin(), sum.end(), bytes.begin() + format::page_bytes - 16);
  }

  std::vector<site> sites_;
};

/// The pages that a checksum covers, and the fixed pages.
inline std::vector<std::uint64_t> covered_pages(const checksums& sums) {
  std::set<std::uint64_t> found{0, format::superblock_offsets[0], format::superblock_offsets[1],
                                format::live_page_offset};
  for (const site& covered : sums.sites())
    for (std::uint64_t offset = covered.range.offset & ~std::uint64_t{4095};
         offset < covered.range.end(); offset += format::page_bytes)
      found.insert(offset);
  return {found.begin(), found.end()};
}

inline void put(content& bytes, std::size_t offset, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width && offset + i < bytes.size(); ++i)
    bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

/// Makes one change, which has eight bytes:
///   page (2)    an index into `pages`
///   offset (2)  the offset in the page
///   kind (1)    0 set a byte, 1 flip bits, 2 add, 3 set 8 bytes to a small number,
///               4 set them to a large number, 5 copy 64 bytes from another page, 6 cut the file
///   value (3)   the operand of the change
inline void change(content& bytes, const std::vector<std::uint64_t>& pages,
                   const std::uint8_t* code) {
  if (bytes.empty()) return;
  const std::size_t page = code[0] | std::size_t{code[1]} << 8;
  const std::size_t in_page = (code[2] | std::size_t{code[3]} << 8) % format::page_bytes;
  const std::size_t offset = (pages[page % pages.size()] + in_page) % bytes.size();
  const std::uint64_t value = code[5] | std::uint64_t{code[6]} << 8 | std::uint64_t{code[7]} << 16;
  switch (code[4] % 7) {
    case 0:
      bytes[offset] = static_cast<std::byte>(value);
      break;
    case 1:
      bytes[offset] ^= static_cast<std::byte>(value | 1);
      break;
    case 2:
      put(bytes, offset, number_at<std::uint8_t>(bytes, offset) + value, 1);
      break;
    case 3:
      put(bytes, offset, value, 8);
      break;
    case 4:
      put(bytes, offset, value << 44 | value >> 4, 8);
      break;
    case 5: {
      const std::size_t source = pages[value % pages.size()] + in_page;
      const std::size_t count = std::min<std::size_t>(64, bytes.size() - std::max(source, offset));
      if (source < bytes.size()) std::memmove(bytes.data() + offset, bytes.data() + source, count);
      break;
    }
    default:
      bytes.resize(std::min(bytes.size(), offset));
  }
}

/// Makes up to 32 changes.
inline void change(content& bytes, const std::vector<std::uint64_t>& pages,
                   std::span<const std::uint8_t> list) {
  constexpr std::size_t code = 8;
  constexpr std::size_t changes_max = 32;
  const std::size_t count = std::min(list.size() / code, changes_max);
  for (std::size_t i = 0; i < count; ++i) change(bytes, pages, list.data() + i * code);
}

/// A sound container, and the pages of it that inputs change.
class original {
 public:
  explicit original(content sound)
      : bytes_(std::move(sound)), sums_(bytes_), pages_(covered_pages(sums_)) {}

  const content& bytes() const { return bytes_; }
  const std::vector<site>& sites() const { return sums_.sites(); }

  /// Makes the changes of an input, and corrects all checksums afterwards if the mode says so.
  void change(content& copy, std::span<const std::uint8_t> list, bool is_corrected) const {
    fuzz::change(copy, pages_, list);
    if (is_corrected) sums_.correct(copy);
  }

 private:
  content bytes_;
  checksums sums_;
  std::vector<std::uint64_t> pages_;
};

}  // namespace shale::fuzz
