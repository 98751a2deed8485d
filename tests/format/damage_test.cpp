// Reads damaged files. The result is `corrupt` or the right data, never a wrong value, a crash or a
// hang.

#include <gtest/gtest.h>

#include <random>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "format/generations/superblock_slots.hpp"
#include "format/pages/header.hpp"
#include "format/pages/superblock.hpp"
#include "format/small_history.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

using test::observe;
using test::plain_state;
using test::recording_file_system;

constexpr std::chrono::milliseconds at_once{0};
const std::string path = "/box/damaged.shale";

class Damage : public testing::Test {
 protected:
  Damage() {
    recording_file_system files;
    container_file container = container_file::create(files, path, {.id = uuid{}});
    // The last transaction changes as much as possible, so that the last two generations share few
    // pages.
    for (int step = 0; step < 3; ++step) {
      states.push_back(states.empty() ? plain_state{} : states.back());
      test::commit_step(container, step, states.back());
    }
    sound = files.now().at(path);
    newest = container.latest().generation();
    end_of_file = container.latest().end_of_file();
  }

  // Returns the result of reading: an error's code, or the state of a committed generation.
  struct outcome {
    errc code{};
    std::uint64_t generation = 0;
    plain_state state;
  };

  static outcome read(recording_file_system& files) {
    outcome seen;
    try {
      container_file container = container_file::open(files, path, open_access::read);
      const generation_view view = container.latest();
      seen.generation = view.generation();
      seen.state = observe(view);
    } catch (const error& failure) {
      seen.code = failure.code();
    }
    return seen;
  }

  void expect_right_or_corrupt(recording_file_system& files, std::uint64_t offset) {
    const outcome seen = read(files);
    if (seen.code != errc{}) {
      ASSERT_EQ(seen.code, errc::corrupt) << "byte " << offset;
      return;
    }
    // A reader may see an older generation only if the damage is in the newest superblock: it
    // cannot tell that from a commit that did not happen.
    const std::uint64_t slot = superblock_offsets[newest_slot];
    const bool in_superblock = offset >= slot && offset < slot + 512;
    ASSERT_EQ(seen.generation, in_superblock ? newest - 1 : newest) << "byte " << offset;
    ASSERT_EQ(seen.state, states[seen.generation - 2]) << "byte " << offset;
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
  for (std::uint64_t offset = 0; offset < sound.size(); ++offset) {
    // In the gaps between the fixed pages, only some bytes are tried.
    const bool in_gap =
        offset < first_extent_offset && sound[offset] == std::byte{0} && offset % 4096 >= 512;
    if (in_gap && offset % 61 != 0) continue;
    const auto mask = static_cast<std::byte>(1u << random() % 8);
    files.flip(path, offset, mask);
    expect_right_or_corrupt(files, offset);
    files.flip(path, offset, mask);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Damage, EveryByteOfTheNewestMetadataCounts) {
  // Some checksum covers every byte of the pages that the generation refers to.
  recording_file_system files({{path, sound}});
  container_file container = container_file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  int pages = 0;
  for (std::uint64_t page = first_extent_offset; page < end_of_file; page += page_bytes) {
    files.flip(path, page + 1, std::byte{1});
    const verification report = verify(view);
    const bool changes_data = read(files).code == errc::corrupt;
    files.flip(path, page + 1, std::byte{1});
    if (changes_data) {
      EXPECT_FALSE(report.findings.empty()) << "page at byte " << page;
      ++pages;
    }
  }
  EXPECT_GE(pages, 6);
}

// If the newest superblock is damaged, a reader sees the generation before, as after a commit that
// a power cut interrupted. But the live page shows that the newest generation was committed, so
// `verify` finds it.
TEST_F(Damage, OfTheNewestSuperblockIsFoundByVerify) {
  recording_file_system files({{path, sound}});
  std::unique_ptr<open_file> raw;
  ASSERT_GE(files.open(path, open_access::read, raw), 0);
  const slots both = read_slots(*raw, uuid{}, path);
  const std::uint32_t slot = *format::newest_slot(both);
  const auto findings = [&] {
    container_file container =
        container_file::open(files, path, open_access::read, {.salvage = true});
    std::string text;
    for (const auto& finding : verify(container.latest()).findings) text += finding.text + "\n";
    return text;
  };
  EXPECT_EQ(findings(), "");
  for (const std::uint64_t offset : {0, 40, 300, 511}) {
    files.flip(path, superblock_offsets[slot] + offset, std::byte{4});
    EXPECT_NE(findings().find("superblock slot " + std::to_string(slot)), std::string::npos);
    files.flip(path, superblock_offsets[slot] + offset, std::byte{4});
    // Damage of the older superblock does no harm.
    files.flip(path, superblock_offsets[1 - slot] + offset, std::byte{4});
    EXPECT_EQ(findings(), "");
    files.flip(path, superblock_offsets[1 - slot] + offset, std::byte{4});
  }
  // A commit that was not announced yet.
  files.flip(path, superblock_offsets[slot], std::byte{4});
  files.flip(path, live_page_offset, static_cast<std::byte>(newest ^ (newest - 1)));
  EXPECT_EQ(findings(), "");
}

// The handle was opened before the damage. A commit would hide that another one is lost.
TEST_F(Damage, OfTheNewestSuperblockStopsWriters) {
  recording_file_system files({{path, sound}});
  container_file container = container_file::open(files, path, open_access::write);
  std::unique_ptr<open_file> raw;
  ASSERT_GE(files.open(path, open_access::read, raw), 0);
  const std::uint32_t slot = *format::newest_slot(read_slots(*raw, uuid{}, path));
  files.flip(path, superblock_offsets[slot] + 40, std::byte{4});
  const auto damaged = files.now().at(path);
  EXPECT_EQ(test::code_of([&] { container.begin(std::chrono::milliseconds(0)); }), errc::corrupt);
  EXPECT_EQ(files.now().at(path), damaged);
}

TEST_F(Damage, AnyTruncationIsFound) {
  recording_file_system files({{path, sound}});
  std::unique_ptr<open_file> raw;
  ASSERT_GE(files.open(path, open_access::write, raw), 0);
  for (std::uint64_t bytes = sound.size(); bytes-- > 0;) {
    // All lengths near the beginning or end of an extent, and some of the others.
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
    // Random bytes over a random range; half of the ranges spare the header.
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
    return decode_superblock(sector, id, static_cast<std::uint32_t>(newest_slot))
        .value()
        .root.offset;
  }();
  files.flip(path, root + 100, std::byte{4});
  try {
    container_file::open(files, path, open_access::read);
    FAIL() << "opened without a root";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::corrupt);
    EXPECT_NE(std::string(failure.what()).find("restore the file from a copy"), std::string::npos);
  }
}

TEST_F(Damage, VerifyNamesTheDamagedChunkAndSegment) {
  recording_file_system files({{path, sound}});
  container_file container = container_file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  EXPECT_EQ(test::unsound(view), "");
  const array_record chunked = view.find("b/a").value();
  files.flip(path, view.find_chunk(chunked, 5)->offset, std::byte{1});
  const array_record dense = view.find("e").value();
  files.flip(path, dense.dense().extents[0].offset + 3, std::byte{1});
  const verification report = verify(view);
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_NE(report.findings[0].text.find("'b/a', chunk 5"), std::string::npos);
  EXPECT_NE(report.findings[1].text.find("'e', segment 0"), std::string::npos);
  EXPECT_EQ(report.findings[0].code, errc::corrupt);
}

// A reader allocates a whole chunk, so a few stored bytes must not make it allocate a GiB. The
// limits are those of docs/container-format.md.
TEST(ChunkEntry, ThatClaimsMoreThanItsCompressorCanPackIsCorrupt) {
  struct limit {
    std::string name;
    std::vector<codec_stage> stages;
    std::uint32_t flags;
    index_t elements;  // of one byte, for which 8 stored bytes are just enough
  };
  const codec_stage by_bytes{stage_kind::byte_shuffle, 0};
  const codec_stage by_zstd{stage_kind::zstd, 1};
  const codec_stage by_lz4{stage_kind::lz4, 1};
  const std::vector<limit> limits{{"zstd", {by_bytes, by_zstd}, 0, 8 * 32768},
                                  {"lz4", {by_bytes, by_lz4}, 0, 8 * 255},
                                  {"shuffle", {by_bytes}, 0, 8},
                                  {"nothing", {}, 0, 8},
                                  {"raw zstd", {by_zstd}, chunk_flag_raw, 8},
                                  {"raw lz4", {by_lz4}, chunk_flag_raw, 8}};
  recording_file_system files;
  container_file container = container_file::create(files, path, {.id = uuid{}});
  transaction change = container.begin(at_once);
  const std::vector<std::byte> stored(8, std::byte{1});
  for (const limit& most : limits) {
    for (const index_t more : {0, 1}) {
      array_record record = test::chunked_record(most.name + (more == 0 ? "" : ", too much"));
      record.dtype = dtype::uint8;
      record.fill_value.resize(1);
      record.shape = {most.elements + more};
      record.chunked().chunk_shape = record.shape;
      record.chunked().grid_capacity = {1};
      record.chunked().stages = most.stages;
      change.put(record);
      test::store_chunk(change, record.name, 0, {stored, most.flags});
    }
  }
  change.commit();
  const generation_view view = container.latest();
  for (const limit& most : limits) {
    EXPECT_EQ(view.find_chunk(view.find(most.name).value(), 0)->stored_bytes, 8u) << most.name;
    const array_record more = view.find(most.name + ", too much").value();
    EXPECT_EQ(test::code_of([&] { view.find_chunk(more, 0); }), errc::corrupt) << most.name;
  }
}

TEST_F(Damage, OfADenseArraysChecksumsIsToldFromDamageOfItsData) {
  recording_file_system files({{path, sound}});
  container_file container = container_file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  const array_record dense = view.find("e").value();
  files.flip(path, dense.dense().checksums.offset, std::byte{1});
  const verification report = verify(view);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_NE(report.findings[0].text.find("segment checksums"), std::string::npos);
  EXPECT_EQ(test::code_of([&] { (void)view.dense_checksums(dense); }), errc::corrupt);
}

TEST_F(Damage, OfALongValueIsFound) {
  const std::vector<std::byte> run(3000, std::byte{'h'});
  recording_file_system files({{path, sound}});
  auto begin = sound.begin();
  for (;;) {  // older generations have their own lists
    begin = std::search(begin, sound.end(), run.begin(), run.end());
    if (begin == sound.end()) break;
    files.flip(path, static_cast<std::uint64_t>(begin - sound.begin()) + 1000, std::byte{1});
    begin += 3000;
  }
  EXPECT_EQ(read(files).code, errc::corrupt);
}

TEST_F(Damage, ReadingBehindTheEndOfAFileIsAFailure) {
  recording_file_system files({{path, sound}});
  container_file container = container_file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  const extent range = view.find("e")->dense().extents.at(0);
  std::vector<std::byte> bytes(range.bytes);
  view.read(range.offset, bytes);
  std::unique_ptr<open_file> raw;
  ASSERT_GE(files.open(path, open_access::write, raw), 0);
  raw->truncate(range.end() - 1);
  EXPECT_EQ(test::code_of([&] { view.read(range.offset, bytes); }), errc::io);
}

// Hostile files, in which every checksum is right.
class Forgery : public Damage {
 protected:
  Forgery() {
    std::copy_n(at(superblock_offsets[newest_slot]), 512, sector_.begin());
    fields_ = decode_superblock(sector_, uuid{}, static_cast<std::uint32_t>(newest_slot)).value();
    catalog_ = load_page_ref(&bytes_[fields_.root.offset + 32]);
  }

  std::vector<std::byte>::iterator at(std::uint64_t offset) {
    return bytes_.begin() + static_cast<std::ptrdiff_t>(offset);
  }

  // Corrects the checksums of catalog, root and superblock, and opens the file.
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
  container_file container = container_file::open(files, path, open_access::read);
  const generation_view view = container.latest();
  EXPECT_EQ(observe(view), states.back());  // every page has been read
  for (std::uint64_t offset = first_extent_offset; offset < sound.size(); ++offset)
    files.flip(path, offset, std::byte{0xff});
  EXPECT_FALSE(verify(view).findings.empty());
}

TEST_F(Damage, UnknownFeaturesAreRefusedNotGuessed) {
  const auto with_features = [&](std::uint64_t incompatible, std::uint64_t read_only) {
    auto bytes = sound;
    superblock_sector sector;
    const auto offset =
        bytes.begin() + static_cast<std::ptrdiff_t>(superblock_offsets[newest_slot]);
    std::copy_n(offset, 512, sector.begin());
    superblock fields =
        decode_superblock(sector, uuid{}, static_cast<std::uint32_t>(newest_slot)).value();
    fields.incompatible = incompatible;
    fields.read_only_compatible = read_only;
    fields.compatible = 1;  // unknown compatible features are ignored
    sector = encode_superblock(fields, uuid{}, static_cast<std::uint32_t>(newest_slot));
    std::copy(sector.begin(), sector.end(), offset);
    return recording_file_system::image{{path, bytes}};
  };
  const auto code = [&](const recording_file_system::image& image, open_access access) {
    recording_file_system files(image);
    try {
      container_file::open(files, path, access);
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
