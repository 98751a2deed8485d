// Containers. An input is a list of changes to a sound one that is made here, so that inputs are
// small and every byte of them lands somewhere. Eight bytes a change, after one byte of mode:
//
//   where (2)   mode "metadata": which of the places that some checksum leads to; else a page
//   offset (2)  in the page
//   what (1)    0 set a byte, 1 flip bits, 2 add, 3 set 8 bytes to a small number, 4 set them to a
//               large one, 5 copy 64 bytes from another page, 6 cut the file
//   value (3)
//
// Modes are bits: 1 corrects every checksum afterwards, from the data up to the superblock, so that
// the changes are met by whoever reads, not by the checksums; 2 also writes a generation.
//
// What must hold: a reader throws corrupt or unsupported, or sees something, and sees it again when
// it looks again. Without mode 1, what it sees is what some generation held: no wrong value, ever.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "format/checksum.hpp"
#include "format/header.hpp"
#include "format/small_history.hpp"
#include "fuzz/require.hpp"
#include "support/recording_file_system.hpp"

namespace {

using namespace shale;
using fuzz::require;
using test::plain_state;
using content = test::recording_file_system::content;

const std::string path = "/box/fuzzed.shale";
constexpr format::patience at_once{0};
constexpr std::size_t change_bytes = 8;
constexpr std::size_t changes_max = 32;

template <class Number>
Number number_at(const content& bytes, std::size_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// ---- checksums, found without a parser
// ------------------------------------------------------------

// A checksum in the file and what it is of. Where `reference` is set, the offset of the range
// stands there and is followed to wherever it has been changed to lead.
struct site {
  std::size_t at = 0;
  std::size_t bytes = 8;  // 8 or 16
  format::extent range;
  std::size_t reference = 0;
};

format::bytes_view part(const content& bytes, const format::extent& range) {
  return format::bytes_view(bytes).subspan(range.offset, range.bytes);
}

std::array<std::byte, 16> sum_of(const content& bytes, const format::extent& range,
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

// The checksum of `range` near `around`, of `width` bytes; 0 if there is none.
std::size_t find_sum(const content& bytes, const format::extent& range, std::size_t width,
                     std::size_t around, std::size_t reach) {
  const auto sum = sum_of(bytes, range, width);
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(around);
  const auto last =
      bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), around + reach));
  const auto found =
      std::search(first, last, sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(width));
  return found == last ? 0 : static_cast<std::size_t>(found - bytes.begin());
}

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
        add(sound, {offset, length}, 16, at, 256);
        add(sound, {offset, length}, 8, at, 48);
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
      if (found != 0) sites_.push_back({found, 8, {offset, length}, 0});
    }
  }

  void add(const content& sound, const format::extent& range, std::size_t width, std::size_t at,
           std::size_t reach) {
    if (range.offset + range.bytes > sound.size()) return;
    if (const std::size_t found = find_sum(sound, range, width, at, reach))
      sites_.push_back({found, width, range, at});
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

// ---- the sound container
// ----------------------------------------------------------------------------

struct sound_container {
  content bytes;
  std::vector<plain_state> states{{}, {}};  // by generation
  std::vector<std::uint64_t> pages;         // that some checksum covers, and the fixed ones
};

sound_container make_sound() {
  sound_container made;
  test::recording_file_system files;
  {
    auto file = format::file::create(files, path, {.id = format::uuid{}});
    for (int step = 0; step < test::history_steps; ++step) {
      auto change = file.begin(at_once);
      made.states.push_back(made.states.back());
      test::tell(step, {change, made.states.back()});
      change.commit();
    }
  }
  made.bytes = files.now().at(path);
  return made;
}

const sound_container& sound() {
  static const sound_container made = make_sound();
  return made;
}

const checksums& sums() {
  static const checksums found(sound().bytes);
  return found;
}

const std::vector<std::uint64_t>& covered_pages() {
  static const std::vector<std::uint64_t> pages = [] {
    std::set<std::uint64_t> found{0, format::superblock_offsets[0], format::superblock_offsets[1],
                                  format::live_page_offset};
    for (const site& each : sums().sites())
      for (std::uint64_t at = each.range.offset & ~std::uint64_t{4095}; at < each.range.end();
           at += format::page_bytes)
        found.insert(at);
    return std::vector<std::uint64_t>(found.begin(), found.end());
  }();
  return pages;
}

// ---- changes
// ------------------------------------------------------------------------------------------

void put(content& bytes, std::size_t at, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

void change(content& bytes, const std::uint8_t* what) {
  if (bytes.empty()) return;
  const auto& pages = covered_pages();
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

// ---- what a reader and a writer make of it
// --------------------------------------------------------------

void require_refusal(const error& failure) {
  const bool refused = failure.code() == errc::corrupt || failure.code() == errc::unsupported;
  if (!refused) std::fprintf(stderr, "%s\n", failure.what());
  require(refused, "hostile bytes are corrupt or unsupported");
}

void read(test::recording_file_system& files, bool is_corrected) {
  try {
    auto file = format::file::open(files, path, format::open_access::read);
    const format::generation_view view = file.latest();
    // Damage is a finding, and never stops the search for more.
    const format::verify_report report = format::verify(view);
    const plain_state seen = test::observe(view);
    require(seen == test::observe(view), "one generation, one content");
    require(seen.size() == view.list().size(), "names are there once");
    if (is_corrected) return;
    const auto& states = sound().states;
    require(view.generation() < states.size(), "a generation that was committed");
    require(seen == states[view.generation()], "no wrong value");
    (void)report;
  } catch (const error& failure) {
    require_refusal(failure);
  }
}

void write(test::recording_file_system& files) {
  try {
    auto file = format::file::open(files, path, format::open_access::write);
    auto next = file.begin(at_once);
    plain_state told;
    test::storyteller story(next, told);
    story.create_chunked("new");
    story.chunk("new", 3, 4);
    story.dense("newer", 9000, 6);
    next.commit();
    const auto view = file.latest();
    require(view.find("newer").has_value(), "what was committed is there");
  } catch (const error& failure) {
    // A hostile catalog may have the name, or a number of a generation that has no next.
    if (failure.code() == errc::already_exists || failure.code() == errc::out_of_space) return;
    require_refusal(failure);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool is_corrected = (data[0] & 1) != 0;
  const bool writes = (data[0] & 2) != 0;
  content bytes = sound().bytes;
  for (std::size_t at = 1, n = 0; at + change_bytes <= size && n < changes_max;
       at += change_bytes, ++n)
    change(bytes, data + at);
  if (is_corrected) sums().correct(bytes);
  test::recording_file_system files({{path, bytes}});
  read(files, is_corrected);
  if (writes) {
    write(files);
    if (is_corrected) read(files, true);
  }
  return 0;
}
