// Changes to the bytes of a container that is sound, and the correction of every checksum behind
// them: with it, a change is met by whoever reads, not by the checksums.
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

#include "format/checksum.hpp"
#include "format/header.hpp"

namespace shale::fuzz {

using content = std::vector<std::byte>;

template <class Number>
inline Number number_at(const content& bytes, std::size_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// A checksum in the file and what it is of. Where `reference` is set, the offset of the range
/// stands there, and its length behind that unless it is always a page's: both are followed to
/// wherever they have been changed to lead.
struct site {
  std::size_t at = 0;
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

/// The checksum of `range` near `around`, of `width` bytes; 0 if there is none.
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

/// Every checksum that a sound container holds, found without a parser.
class checksums {
 public:
  explicit checksums(const content& sound) {
    find_references(sound);
    find_data(sound);
    order();
  }

  const std::vector<site>& sites() const { return sites_; }

  void correct(content& bytes) const {
    for (const site& each : sites_) {
      format::extent range = each.range;
      if (each.reference != 0 && each.reference + 8 <= bytes.size())
        range.offset = number_at<std::uint64_t>(bytes, each.reference);
      if (each.has_length && each.reference + 16 <= bytes.size())
        range.bytes = number_at<std::uint64_t>(bytes, each.reference + 8);
      if (each.at + each.bytes > bytes.size()) continue;
      if (range.offset > bytes.size() || range.bytes > bytes.size() - range.offset) continue;
      const auto sum = sum_of(bytes, range, each.bytes);
      std::memcpy(bytes.data() + each.at, sum.data(), each.bytes);
    }
    correct_superblocks(bytes);
  }

 private:
  // Whatever looks like the offset of an extent and has the checksum of that extent behind it.
  void find_references(const content& sound) {
    for (std::size_t at = 0; at + 48 <= sound.size(); ++at) {
      const auto offset = number_at<std::uint64_t>(sound, at);
      if (offset < format::first_extent_offset || offset >= sound.size() || offset % 64 != 0)
        continue;
      const auto length = number_at<std::uint64_t>(sound, at + 8);
      add(sound, {offset, format::page_bytes}, 16, at, 48);
      if (length != 0 && length < sound.size()) {
        add(sound, {offset, length}, 16, at, 256, true);
        add(sound, {offset, length}, 8, at, 48, true);
      }
    }
  }

  // Checksums of dense data, which lie in extents of their own.
  void find_data(const content& sound) {
    for (std::size_t at = format::first_extent_offset; at + 16 <= sound.size(); ++at) {
      const auto offset = number_at<std::uint64_t>(sound, at);
      const auto length = number_at<std::uint64_t>(sound, at + 8);
      if (offset % 4096 != 0 || offset < format::first_extent_offset || length == 0) continue;
      if (offset > sound.size() || length > sound.size() - offset) continue;
      const std::size_t found =
          find_sum(sound, {offset, length}, 8, format::first_extent_offset, sound.size());
      if (found != 0) sites_.push_back({found, 8, {offset, length}});
    }
  }

  void add(const content& sound, const format::extent& range, std::size_t width, std::size_t at,
           std::size_t reach, bool has_length = false) {
    if (range.offset + range.bytes > sound.size()) return;
    if (const std::size_t found = find_sum(sound, range, width, at, reach))
      sites_.push_back({found, width, range, at, has_length});
  }

  // A checksum comes after those that lie in what it covers.
  void order() {
    std::sort(sites_.begin(), sites_.end(), [](const site& a, const site& b) {
      return std::tie(a.at, a.range.offset) < std::tie(b.at, b.range.offset);
    });
    const auto same = [](const site& a, const site& b) { return a.at == b.at; };
    sites_.erase(std::unique(sites_.begin(), sites_.end(), same), sites_.end());
    std::vector<site> ordered;
    std::vector<bool> visited(sites_.size());
    for (std::size_t i = 0; i < sites_.size(); ++i) visit(i, visited, ordered);
    sites_ = std::move(ordered);
  }

  void visit(std::size_t which, std::vector<bool>& visited, std::vector<site>& ordered) {
    if (visited[which]) return;
    visited[which] = true;
    const format::extent& range = sites_[which].range;
    for (std::size_t i = 0; i < sites_.size(); ++i)
      if (sites_[i].at >= range.offset && sites_[i].at < range.end()) visit(i, visited, ordered);
    ordered.push_back(sites_[which]);
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

/// The pages that some checksum covers, and the fixed ones.
inline std::vector<std::uint64_t> covered_pages(const checksums& sums) {
  std::set<std::uint64_t> found{0, format::superblock_offsets[0], format::superblock_offsets[1],
                                format::live_page_offset};
  for (const site& each : sums.sites())
    for (std::uint64_t at = each.range.offset & ~std::uint64_t{4095}; at < each.range.end();
         at += format::page_bytes)
      found.insert(at);
  return {found.begin(), found.end()};
}

inline void put(content& bytes, std::size_t at, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

/// Eight bytes:
///   where (2)   which of `pages`
///   offset (2)  in the page
///   what (1)    0 set a byte, 1 flip bits, 2 add, 3 set 8 bytes to a small number, 4 set them to a
///               large one, 5 copy 64 bytes from another page, 6 cut the file
///   value (3)
inline void change(content& bytes, const std::vector<std::uint64_t>& pages,
                   const std::uint8_t* what) {
  if (bytes.empty()) return;
  const std::size_t where = what[0] | std::size_t{what[1]} << 8;
  const std::size_t in_page = (what[2] | std::size_t{what[3]} << 8) % format::page_bytes;
  const std::size_t at = (pages[where % pages.size()] + in_page) % bytes.size();
  const std::uint64_t value = what[5] | std::uint64_t{what[6]} << 8 | std::uint64_t{what[7]} << 16;
  switch (what[4] % 7) {
    case 0:
      bytes[at] = static_cast<std::byte>(value);
      break;
    case 1:
      bytes[at] ^= static_cast<std::byte>(value | 1);
      break;
    case 2:
      put(bytes, at, number_at<std::uint8_t>(bytes, at) + value, 1);
      break;
    case 3:
      put(bytes, at, value, 8);
      break;
    case 4:
      put(bytes, at, value << 44 | value >> 4, 8);
      break;
    case 5: {
      const std::size_t from = pages[value % pages.size()] + in_page;
      const std::size_t count = std::min<std::size_t>(64, bytes.size() - std::max(from, at));
      if (from < bytes.size()) std::memmove(bytes.data() + at, bytes.data() + from, count);
      break;
    }
    default:
      bytes.resize(std::min(bytes.size(), at));
  }
}

/// Up to 32 of them.
inline void change(content& bytes, const std::vector<std::uint64_t>& pages,
                   std::span<const std::uint8_t> list) {
  constexpr std::size_t change_bytes = 8;
  constexpr std::size_t changes_max = 32;
  const std::size_t count = std::min(list.size() / change_bytes, changes_max);
  for (std::size_t i = 0; i < count; ++i) change(bytes, pages, list.data() + i * change_bytes);
}

/// A sound container, and what of it inputs change.
class original {
 public:
  explicit original(content sound)
      : bytes_(std::move(sound)), sums_(bytes_), pages_(covered_pages(sums_)) {}

  const content& bytes() const { return bytes_; }
  const std::vector<site>& sites() const { return sums_.sites(); }

  /// Makes the changes that an input lists, and corrects all checksums afterwards if it says so.
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
