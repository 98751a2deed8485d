// What a reader makes of damaged files: `corrupt`, or the right data; never a wrong value, a crash
// or a hang.

#include <gtest/gtest.h>

#include <random>

#include "format/bytes.hpp"
#include "format/checksum.hpp"
#include "format/header.hpp"
#include "format/small_history.hpp"
#include "format/superblock.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

using test::observe;
using test::plain_state;
using test::recording_file_system;

constexpr patience at_once{0};
const std::string path = "/box/damaged.shale";

class Damage : public testing::Test {
 protected:
  Damage() {
    recording_file_system files;
    file container = file::create(files, path, {.id = uuid{}});
    // The last generation touches everything, so that the one before shares no page with it but
    // what the steps leave alone.
    for (int step = 0; step < 3; ++step) {
      states.push_back(states.empty() ? plain_state{} : states.back());
      test::commit_step(container, step, states.back());
    }
    sound = files.now().at(path);
    newest = container.latest().generation();
    end_of_file = container.latest().end_of_file();
  }

  // What a reader sees: an error's code, or the state of a generation that was committed.
  struct outcome {
    errc code{};
    std::uint64_t generation = 0;
    plain_state state;
  };

  static outcome read(recording_file_system& files) {
    outcome seen;
    try {
      file container = file::open(files, path, open_access::read);
      const generation_view view = container.latest();
      seen.generation = view.generation();
      seen.state = observe(view);
    } catch (const error& failure) {
      seen.code = failure.code();
    }
    return seen;
  }

  void expect_right_or_corrupt(recording_file_system& files, std::uint64_t at) {
    const outcome seen = read(files);
    if (seen.code != errc{}) {
      ASSERT_EQ(seen.code, errc::corrupt) << "byte " << at;
      return;
    }
    // An older generation may only be shown where the newest superblock itself is what was damaged:
    // nobody can tell that from a commit that did not happen.
    const std::uint64_t slot = superblock_offsets[newest_slot];
    const bool in_superblock = at >= slot && at < slot + 512;
    ASSERT_EQ(seen.generation, in_superblock ? newest - 1 : newest) << "byte " << at;
    ASSERT_EQ(seen.state, states[seen.generation - 2]) << "byte " << at;
  }

  recording_file_system::content sound;
  std::vector<plain_state> states;  // of generations 2, 3, …
  std::uint64_t newest = 0;
  std::uint64_t end_of_file = 0;
  int newest_slot = 1;  // generation 1 went into slot 0
};

// tree.2
TEST_F(Damage, AnyChangedByteIsFoundOrDoesNotMatter) {
  recording_file_system files({{path, sound}});
  ASSERT_EQ(read(files).state, states.back());
  std::mt19937_64 random(1);
  for (std::uint64_t at = 0; at < sound.size(); ++at) {
    // Of the gaps between the fixed pages, a sample.
    const bool in_gap = at < first_extent_offset && sound[at] == std::byte{0} && at % 4096 >= 512;
    if (in_gap && at % 61 != 0) continue;
    const auto mask = static_cast<std::byte>(1u << random() % 8);
    files.flip(path, at, mask);
    expect_right_or_corrupt(files, at);
    files.flip(path, at, mask);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Damage, EveryByteOfTheNewestMetadataCounts) {
  // Of the pages that the generation refers to, every byte is covered by some checksum.
  recording_file_system files({{path, sound}});
  file container = file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  int pages = 0;
  for (std::uint64_t page = first_extent_offset; page < end_of_file; page += page_bytes) {
    files.flip(path, page + 1, std::byte{1});
    const verify_report report = verify(view);
    const bool changes_data = read(files).code == errc::corrupt;
    files.flip(path, page + 1, std::byte{1});
    if (changes_data) {
      EXPECT_FALSE(report.findings.empty()) << "page at byte " << page;
      ++pages;
    }
  }
  EXPECT_GE(pages, 6);
}

TEST_F(Damage, AnyTruncationIsFound) {
  recording_file_system files({{path, sound}});
  std::unique_ptr<open_file> raw;
  ASSERT_GE(files.open(path, open_access::write, raw), 0);
  for (std::uint64_t bytes = sound.size(); bytes-- > 0;) {
    // Every length near where something begins or ends, and a sample of the others.
    const std::uint64_t near = bytes % 512;
    if (near > 1 && near < 511 && bytes % 37 != 0) continue;
    raw->truncate(bytes);
    const outcome seen = read(files);
    ASSERT_EQ(seen.code, bytes < end_of_file ? errc::corrupt : errc{}) << bytes << " bytes";
  }
}

TEST_F(Damage, RandomRubbishIsNotAContainer) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    auto bytes = sound;
    // Rubbish over a random stretch, behind the header half of the time.
    const std::size_t start =
        round % 2 == 0 ? random() % bytes.size()
                       : first_extent_offset + random() % (bytes.size() - first_extent_offset);
    const std::size_t stop = std::min<std::size_t>(bytes.size(), start + random() % 9000);
    for (std::size_t i = start; i < stop; ++i) bytes[i] = static_cast<std::byte>(random());
    recording_file_system files({{path, bytes}});
    const outcome seen = read(files);
    if (seen.code != errc{}) {
      ASSERT_EQ(seen.code, errc::corrupt);
    } else {
      ASSERT_EQ(seen.state, states[seen.generation - 2]);
    }
  }
}

TEST_F(Damage, AValidSuperblockWithoutItsRootIsCorruptNotOld) {
  recording_file_system files({{path, sound}});
  const std::uint64_t root = [&] {
    const auto id = uuid{};
    superblock_sector sector;
    std::copy_n(sound.begin() + static_cast<std::ptrdiff_t>(superblock_offsets[newest_slot]), 512,
                sector.begin());
    return valid(sector, id, static_cast<std::uint32_t>(newest_slot)).value().root.offset;
  }();
  files.flip(path, root + 100, std::byte{4});
  try {
    file::open(files, path, open_access::read);
    FAIL() << "opened without a root";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::corrupt);
    EXPECT_NE(std::string(failure.what()).find("restore the file from a copy"), std::string::npos);
  }
}

TEST_F(Damage, VerifyNamesTheDamagedChunkAndSegment) {
  recording_file_system files({{path, sound}});
  file container = file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  EXPECT_EQ(test::unsound(view), "");
  const array_record chunked = view.find("b/a").value();
  files.flip(path, view.find_chunk(chunked, 5)->offset, std::byte{1});
  const array_record dense = view.find("e").value();
  files.flip(path, dense.dense().extents[0].offset + 3, std::byte{1});
  const verify_report report = verify(view);
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_NE(report.findings[0].text.find("'b/a', chunk 5"), std::string::npos);
  EXPECT_NE(report.findings[1].text.find("'e', segment 0"), std::string::npos);
  EXPECT_EQ(report.findings[0].code, errc::corrupt);
}

// Who reads a chunk makes room for all of it, so a few stored bytes must not ask for a GiB.
TEST(ChunkEntry, ThatClaimsMoreThanZstdCanPackIsCorrupt) {
  recording_file_system files;
  file container = file::create(files, path, {.id = uuid{}});
  transaction change = container.begin(at_once);
  const std::vector<std::byte> stored(8, std::byte{1});
  for (const auto& [name, elements] : {std::pair("most", 65536), {"more", 98304}}) {
    array_record record = test::chunked_record(name);
    record.shape = {elements};
    std::get<chunked_layout>(record.layout).chunk_shape = {elements};
    std::get<chunked_layout>(record.layout).grid_capacity = {1};
    change.put(record);
    change.store_chunk(name, 0, {stored, 0});
  }
  change.commit();
  const generation_view view = container.latest();
  EXPECT_EQ(view.find_chunk(view.find("most").value(), 0)->stored_bytes, 8u);  // 256 KiB
  try {
    view.find_chunk(view.find("more").value(), 0);  // 384 KiB
    FAIL() << "8 bytes hold three blocks";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::corrupt);
  }
}

TEST_F(Damage, OfADenseArraysChecksumsIsToldFromDamageOfItsData) {
  recording_file_system files({{path, sound}});
  file container = file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  const array_record dense = view.find("e").value();
  files.flip(path, dense.dense().checksums.offset, std::byte{1});
  const verify_report report = verify(view);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_NE(report.findings[0].text.find("segment checksums"), std::string::npos);
  EXPECT_EQ(test::code_of([&] { (void)view.dense_checksums(dense); }), errc::corrupt);
}

TEST_F(Damage, OfALongValueIsFound) {
  const std::vector<std::byte> run(3000, std::byte{'h'});
  recording_file_system files({{path, sound}});
  auto from = sound.begin();
  for (;;) {  // older generations have theirs
    from = std::search(from, sound.end(), run.begin(), run.end());
    if (from == sound.end()) break;
    files.flip(path, static_cast<std::uint64_t>(from - sound.begin()) + 1000, std::byte{1});
    from += 3000;
  }
  EXPECT_EQ(read(files).code, errc::corrupt);
}

TEST_F(Damage, ReadingBehindTheEndOfAFileIsAFailure) {
  recording_file_system files({{path, sound}});
  file container = file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  const extent where = view.find("e")->dense().extents.at(0);
  std::vector<std::byte> bytes(where.bytes);
  view.read(where.offset, bytes);
  std::unique_ptr<open_file> raw;
  ASSERT_GE(files.open(path, open_access::write, raw), 0);
  raw->truncate(where.end() - 1);
  EXPECT_EQ(test::code_of([&] { view.read(where.offset, bytes); }), errc::io);
}

// Files in which every checksum is right: what somebody makes who means harm.
class Forgery : public Damage {
 protected:
  Forgery() {
    std::copy_n(at(superblock_offsets[newest_slot]), 512, sector_.begin());
    fields_ = valid(sector_, uuid{}, static_cast<std::uint32_t>(newest_slot)).value();
    catalog_ = load_page_ref(&bytes_[fields_.root.offset + 32]);
  }

  std::vector<std::byte>::iterator at(std::uint64_t offset) {
    return bytes_.begin() + static_cast<std::ptrdiff_t>(offset);
  }

  // Sets the checksums of catalog, root and superblock right, and opens the file.
  errc code() {
    if (catalog_.offset <= bytes_.size() - page_bytes)
      catalog_.checksum = checksum_metadata({&bytes_[catalog_.offset], page_bytes});
    store_page_ref(&bytes_[fields_.root.offset + 32], catalog_);
    fields_.root_checksum = checksum_metadata({&bytes_[fields_.root.offset], page_bytes});
    sector_ = encode_superblock(fields_, uuid{}, static_cast<std::uint32_t>(newest_slot));
    std::copy(sector_.begin(), sector_.end(), at(superblock_offsets[newest_slot]));
    recording_file_system files({{path, bytes_}});
    return read(files).code;
  }

  std::vector<std::byte> bytes_ = sound;
  superblock_sector sector_;
  superblock fields_;
  page_ref catalog_;
};

TEST_F(Forgery, IsReadWhenNothingIsChanged) { EXPECT_EQ(code(), errc{}); }

TEST_F(Forgery, OfARootOfAnotherGenerationIsCorrupt) {
  bytes_[fields_.root.offset + 8] ^= std::byte{1};
  EXPECT_EQ(code(), errc::corrupt);
}

TEST_F(Forgery, OfAPageForAnotherPlaceIsCorrupt) {
  bytes_[catalog_.offset + 17] ^= std::byte{0x10};
  EXPECT_EQ(code(), errc::corrupt);
}

TEST_F(Forgery, OfAPageWithRubbishBehindItsCellsIsCorrupt) {
  bytes_[catalog_.offset + page_bytes - 1] = std::byte{1};
  EXPECT_EQ(code(), errc::corrupt);
}

TEST_F(Forgery, OfAReferenceBehindTheGenerationsEndIsCorrupt) {
  const std::uint64_t place = (sound.size() + page_bytes - 1) / page_bytes * page_bytes;
  bytes_.resize(place + page_bytes);
  std::copy_n(at(catalog_.offset), page_bytes, at(place));
  store(&bytes_[place + 16], place);
  catalog_.offset = place;
  EXPECT_EQ(code(), errc::corrupt);
  catalog_.offset = UINT64_MAX - page_bytes + 1;
  EXPECT_EQ(code(), errc::corrupt);
}

TEST_F(Damage, VerifyDoesNotTrustPagesReadBefore) {
  recording_file_system files({{path, sound}});
  file container = file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  EXPECT_EQ(observe(view), states.back());  // every page has been read
  for (std::uint64_t at = first_extent_offset; at < sound.size(); ++at)
    files.flip(path, at, std::byte{0xff});
  EXPECT_FALSE(verify(view).findings.empty());
}

TEST_F(Damage, UnknownFeaturesAreRefusedNotGuessed) {
  const auto with_features = [&](std::uint64_t incompatible, std::uint64_t read_only) {
    auto bytes = sound;
    superblock_sector sector;
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(superblock_offsets[newest_slot]);
    std::copy_n(at, 512, sector.begin());
    superblock fields = valid(sector, uuid{}, static_cast<std::uint32_t>(newest_slot)).value();
    fields.incompatible = incompatible;
    fields.read_only_compatible = read_only;
    fields.compatible = 1;  // never matters
    sector = encode_superblock(fields, uuid{}, static_cast<std::uint32_t>(newest_slot));
    std::copy(sector.begin(), sector.end(), at);
    return recording_file_system::image{{path, bytes}};
  };
  const auto code = [&](const recording_file_system::image& image, open_access access) {
    recording_file_system files(image);
    try {
      file::open(files, path, access);
      return errc{};
    } catch (const error& failure) {
      return failure.code();
    }
  };
  EXPECT_EQ(code(with_features(0, 0), open_access::write), errc{});
  EXPECT_EQ(code(with_features(0, 1), open_access::read), errc{});
  EXPECT_EQ(code(with_features(0, 1), open_access::write), errc::unsupported);
  EXPECT_EQ(code(with_features(1, 0), open_access::read), errc::unsupported);
}

}  // namespace
}  // namespace shale::format
