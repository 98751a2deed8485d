// Tests `verify` with files that have correct checksums but contradict themselves, as a faulty or
// hostile writer makes them.

#include "format/container/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "format/chunks/chunk_index.hpp"
#include "format/container/space_use.hpp"
#include "format/pages/page.hpp"
#include "format/pages/superblock.hpp"
#include "format/small_history.hpp"
#include "fuzz/container_changes.hpp"
#include "support/failures.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

using test::recording_file_system;

constexpr std::chrono::milliseconds at_once{0};
constexpr std::uint64_t never = UINT64_MAX;
const std::string path = "/box/contradiction.shale";

class Contradiction : public testing::Test {
 protected:
  Contradiction() {
    recording_file_system files;
    container_file container = container_file::create(files, path, {.id = uuid{}});
    {
      transaction change = container.begin(at_once);
      test::plain_state told;
      test::storyteller story(change, told);
      story.create_chunked("a");
      story.chunk("a", 3, 1);
      story.chunk("a", 5, 2);
      story.dense("d", 5000, 3);
      change.commit();
    }
    bytes_ = files.now().at(path);
    const generation_view view = container.latest();
    first_ = view.find_chunk(*view.find("a"), 3).value();
    second_ = view.find_chunk(*view.find("a"), 5).value();
    end_of_file_ = view.end_of_file();
    checksums_.emplace(bytes_);
  }

  // Corrects the checksums, and returns the findings of `verify`.
  std::string findings() {
    fuzz::content changed = bytes_;
    checksums_->correct(changed);
    recording_file_system files({{path, changed}});
    container_file container = container_file::open(files, path, open_access::read);
    std::string all;
    for (const finding& found : verify(container.latest()).findings) all += found.text + "\n";
    return all;
  }
  void expect_finding(const std::string& text) {
    const std::string all = findings();
    EXPECT_NE(all.find(text), std::string::npos) << "wanted " << text << "\n" << all;
  }

  template <class Bytes>
  std::size_t place_of(const Bytes& record) const {
    const auto found = std::search(bytes_.begin(), bytes_.end(), record.begin(), record.end());
    EXPECT_NE(found, bytes_.end());
    EXPECT_EQ(std::search(found + 1, bytes_.end(), record.begin(), record.end()), bytes_.end());
    return static_cast<std::size_t>(found - bytes_.begin());
  }

  // The positions in the file at which the newest generation's space map stores the lengths of its
  // live ranges. The fields `born` and `freed` follow each length. Ranges of data are longer than
  // one page, or not a whole number of pages.
  std::vector<std::size_t> live_lengths() const {
    std::vector<std::size_t> found;
    for (std::size_t offset = first_extent_offset; offset + 24 <= bytes_.size(); ++offset) {
      const auto length = fuzz::number_at<std::uint64_t>(bytes_, offset);
      if (length != 0 && length % 64 == 0 && length < bytes_.size() &&
          fuzz::number_at<std::uint64_t>(bytes_, offset + 8) == 2 &&
          fuzz::number_at<std::uint64_t>(bytes_, offset + 16) == never)
        found.push_back(offset);
    }
    return found;
  }
  void add(std::size_t offset, std::uint64_t value) {
    fuzz::put(bytes_, offset, fuzz::number_at<std::uint64_t>(bytes_, offset) + value, 8);
  }

  fuzz::content bytes_;
  chunk_entry first_, second_;
  std::uint64_t end_of_file_ = 0;
  std::optional<fuzz::checksums> checksums_;
};

TEST_F(Contradiction, IsFoundOnlyWhereThereIsOne) {
  EXPECT_EQ(findings(), "");
  EXPECT_FALSE(live_lengths().empty());
}

// Throws in the middle of an array, like a cancelled executor or exhausted memory.
TEST_F(Contradiction, ExceptionsThatStopTheCheckAreNotFindings) {
  recording_file_system files({{path, bytes_}});
  container_file container = container_file::open(files, path, open_access::read);
  for (const errc code : {errc::cancelled, errc::out_of_memory}) {
    verifier work(container.latest());
    const auto check = [&] {
      work.check_metadata([&](verify_task&&) { throw error(code, "stopped from outside"); });
    };
    EXPECT_EQ(test::code_of(check), code);
    EXPECT_TRUE(work.finish().findings.empty());
  }
}

TEST_F(Contradiction, OfTwoChunksInOnePlace) {
  const std::size_t offset = place_of(encode_chunk_entry(second_));
  const auto same = encode_chunk_entry(first_);
  std::copy(same.begin(), same.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  expect_finding("two things use bytes " + std::to_string(first_.offset));
  expect_finding("are live in the space map, but nothing uses them");
}

TEST_F(Contradiction, OfAChunkOutsideTheGrid) {
  // The key is in front of the entry. The chunk number 5 becomes one beyond the 32 chunks.
  const std::size_t entry = place_of(encode_chunk_entry(second_));
  const std::string key = chunk_key(5);
  const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(entry - 64);
  const auto found =
      std::search(first, first + 64, key.begin(), key.end(),
                  [](std::byte a, char b) { return a == static_cast<std::byte>(b); });
  ASSERT_NE(found, first + 64);
  const std::string other = chunk_key(33);
  std::transform(other.begin(), other.end(), found,
                 [](char character) { return static_cast<std::byte>(character); });
  expect_finding("array 'a': chunk 33 is outside the grid");
}

TEST_F(Contradiction, OfAnArrayWithoutAName) {
  superblock_sector sector;
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(superblock_offsets[1]), sector.size(),
              sector.begin());
  const std::uint64_t root = decode_superblock(sector, uuid{}, 1).value().root.offset;
  const std::uint64_t offset = load_page_ref(&bytes_[root + 32]).offset;
  const page catalog{bytes_view(bytes_).subspan(offset, page_bytes)};
  page changed(tree_kind::catalog, page_kind::leaf, 0);
  changed.insert_value(0, "", catalog.value(0));
  changed.stamp(catalog.generation(), offset);
  EXPECT_TRUE(page::problem(changed.bytes()));
  std::copy(changed.bytes().begin(), changed.bytes().end(),
            bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  expect_finding("catalog");
}

TEST_F(Contradiction, OfAnArrayWhoseNameIsNone) {
  superblock_sector sector;
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(superblock_offsets[1]), sector.size(),
              sector.begin());
  const std::uint64_t root = decode_superblock(sector, uuid{}, 1).value().root.offset;
  const std::uint64_t catalog = load_page_ref(&bytes_[root + 32]).offset;
  // The slot says where the first cell is; its key comes behind two lengths.
  const std::size_t key = catalog + fuzz::number_at<std::uint16_t>(bytes_, catalog + 32) + 4;
  ASSERT_EQ(bytes_[key], std::byte{'a'});
  bytes_[key] = std::byte{0x1b};
  const std::string all = findings();
  EXPECT_NE(all.find("array '\\x1b'"), std::string::npos) << all;
  EXPECT_EQ(all.find('\x1b'), std::string::npos) << "a terminal would obey";

  fuzz::content changed = bytes_;
  checksums_->correct(changed);
  recording_file_system files({{path, changed}});
  const generation_view view = container_file::open(files, path, open_access::read).latest();
  EXPECT_EQ(test::code_of([&] { static_cast<void>(view.list()); }), errc::corrupt);
  EXPECT_EQ(test::code_of([&] { static_cast<void>(view.children({}, {}, 10)); }), errc::corrupt);
  EXPECT_EQ(view.list("d"), std::vector<std::string>{"d"});
}

// The index of an array names one long chunk in place of many short ones.
TEST(HostileIndex, MakesVerifyReadNoMoreThanTheFile) {
  constexpr std::uint64_t chunks = 24;
  array_record record = test::chunked_record("a");
  record.shape = {chunks * 16'384};
  record.chunked().chunk_shape = {16'384};
  const codec coder(record.chunked().stages, record.dtype);
  std::vector<std::byte> noise(chunk_bytes(record));
  std::mt19937 random(1);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());

  recording_file_system sound;
  container_file container = container_file::create(sound, path, {.id = uuid{}});
  transaction change = container.begin(at_once);
  change.put(record);
  for (std::uint64_t number = 0; number < chunks; ++number) {
    const std::vector<std::byte> zeros(noise.size());
    test::store_chunk(change, "a", number,
                      coder.encode(number == 0 ? noise : zeros, codec_workspace::of_this_thread()));
  }
  change.commit();
  fuzz::content bytes = sound.now().at(path);
  const fuzz::checksums sums(bytes);
  const generation_view before = container.latest();
  const auto stored_entry = [&](std::uint64_t number) {
    return encode_chunk_entry(before.find_chunk(*before.find("a"), number).value());
  };
  for (std::uint64_t number = 1; number < chunks; ++number) {
    const auto entry = stored_entry(number);
    const auto found = std::search(bytes.begin(), bytes.end(), entry.begin(), entry.end());
    ASSERT_NE(found, bytes.end());
    std::ranges::copy(stored_entry(0), found);
  }
  sums.correct(bytes);

  recording_file_system files({{path, bytes}});
  container_file hostile = container_file::open(files, path, open_access::read);
  verifier work(hostile.latest());
  std::uint64_t to_read = 0;
  work.check_metadata([&](verify_task&& task) {
    for (const extent& piece : task.pieces) to_read += piece.bytes;
  });
  EXPECT_GT(to_read, 0u);
  EXPECT_LE(to_read, bytes.size());
  std::string all;
  for (const finding& found : work.finish().findings) all += found.text + "\n";
  EXPECT_NE(all.find("more bytes are in use than the generation has"), std::string::npos) << all;
  EXPECT_NE(all.find("two things use bytes"), std::string::npos) << all;
  EXPECT_EQ(test::code_of([&] { space_use(hostile.latest(), {}); }), errc::corrupt);
}

TEST_F(Contradiction, OfALiveRangeThatIsTooShort) {
  add(live_lengths().front(), std::uint64_t(0) - 64);
  expect_finding("the space map says nothing about bytes");
  expect_finding("are used, but not live in the space map");
}

TEST_F(Contradiction, OfALiveRangeThatIsTooLong) {
  add(live_lengths().front(), 64);
  expect_finding("the space map counts bytes");
}

// Of a page at the end that nothing uses and that is not free either.
TEST_F(Contradiction, EndsTheCountOfSpace) {
  const auto count_space = [&] {
    fuzz::content changed = bytes_;
    checksums_->correct(changed);
    recording_file_system files({{path, changed}});
    container_file container = container_file::open(files, path, open_access::read);
    return space_use(container.latest(), {}).file_bytes;
  };
  EXPECT_EQ(count_space(), bytes_.size());
  const auto end = static_cast<std::size_t>(superblock_offsets[1] + superblock_bytes);
  for (auto place = static_cast<std::size_t>(superblock_offsets[1]); place < end; place += 8)
    if (fuzz::number_at<std::uint64_t>(bytes_, place) == end_of_file_) add(place, page_bytes);
  bytes_.resize(bytes_.size() + page_bytes);
  expect_finding("the space map ends at byte");
  EXPECT_EQ(test::code_of([&] { count_space(); }), errc::corrupt);
}

TEST_F(Contradiction, OfALiveRangeFromTheFuture) {
  add(live_lengths().front() + 8, 7);
  expect_finding("are live from generation 9 on");
}

TEST_F(Contradiction, OfAnEntryThatIsNotPossible) {
  fuzz::put(bytes_, live_lengths().front(), 0, 8);
  expect_finding("the space map holds an entry that is not possible");
}

TEST_F(Contradiction, OfTheNumberOfArrays) {
  superblock_sector sector;
  const auto slot = bytes_.begin() + static_cast<std::ptrdiff_t>(superblock_offsets[1]);
  std::copy_n(slot, sector.size(), sector.begin());
  const std::uint64_t root = decode_superblock(sector, uuid{}, 1).value().root.offset;
  std::vector<std::size_t> places;
  for (std::size_t offset = root + 24; offset < root + 512; offset += 8)
    if (fuzz::number_at<std::uint64_t>(bytes_, offset) == 2) places.push_back(offset);
  ASSERT_EQ(places.size(), 1u);
  fuzz::put(bytes_, places[0], 3, 8);
  expect_finding("the catalog holds 2 arrays, the root page says 3");
}

TEST_F(Contradiction, OfTheGenerationsEnd) {
  superblock_sector sector;
  const auto slot = bytes_.begin() + static_cast<std::ptrdiff_t>(superblock_offsets[1]);
  std::copy_n(slot, sector.size(), sector.begin());
  superblock fields = decode_superblock(sector, uuid{}, 1).value();
  fields.end_of_file += page_bytes;
  sector = encode_superblock(fields, uuid{}, 1);
  std::copy(sector.begin(), sector.end(), slot);
  bytes_.resize(bytes_.size() + page_bytes);
  expect_finding("the space map ends at byte " + std::to_string(end_of_file_) +
                 ", the generation at " + std::to_string(end_of_file_ + page_bytes));
}

}  // namespace
}  // namespace shale::format
