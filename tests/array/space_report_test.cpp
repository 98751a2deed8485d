// What container::space counts. That every byte is counted once (space.1) is compared with the size
// of the file; what is counted where, with `verify` and with the sizes of the arrays.
#include "shale/space_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "array/test_support.hpp"
#include "fuzz/container_changes.hpp"

namespace shale {
namespace {

class SpaceReport : public test::fresh_container {
 protected:
  static std::uint64_t sum_of(const space_report& report) {
    std::uint64_t sum = report.unknown_bytes + report.metadata_bytes +
                        report.held_by_readers_bytes + report.retained_bytes +
                        report.previous_bytes + report.free_bytes;
    for (const auto& array : report.arrays) sum += array.data_bytes + array.index_bytes;
    return sum;
  }

  // The report, after it was compared with the file.
  space_report measured() const {
    const space_report report = file_.space();
    EXPECT_EQ(sum_of(report), report.file_bytes);
    EXPECT_EQ(report.file_bytes, std::filesystem::file_size(path_));
    EXPECT_EQ(report.unknown_bytes, 0u);
    const verification found = file_.verify();
    EXPECT_EQ(report.generation, found.generation);
    EXPECT_EQ(report.held_by_readers_bytes + report.retained_bytes + report.previous_bytes +
                  report.free_bytes,
              found.freed_bytes + found.free_bytes);
    return report;
  }

  array_spec chunked(const dims& shape, const dims& chunk) const {
    return {.dtype = dtype::int32,
            .shape = shape,
            .kind = array_kind::chunked,
            .chunk_shape = chunk,
            .codec = {.compression = std::nullopt}};
  }
};

TEST_F(SpaceReport, CountsEveryByteOnceInRandomHistories) {
  std::mt19937 random(17);
  std::map<int, snapshot> held;  // some of the generations
  for (int step = 0; step < 60; ++step) {
    auto change = file_.begin();
    for (int count = 1 + static_cast<int>(random() % 3); count > 0; --count) {
      const std::string name = "a" + std::to_string(random() % 5);
      const auto length = static_cast<index_t>(random() % 9000);
      if (const auto found = change.find(name)) {
        if (random() % 3 == 0) change.remove(name);
        else if (found->kind() == array_kind::chunked && random() % 2 == 0)
          change.append(name, full({length / 7}, step));
        else change.update(name).write(expr(step));
      } else if (random() % 2 == 0) {
        change.create(name, {.dtype = dtype::int32, .shape = {length}}).write(expr(step));
      } else {
        change.create(name, chunked({length}, {1 + length / 9})).write(expr(step));
      }
      if (random() % 4 == 0 && change.find(name))
        change.set_attribute(name, "note", std::string(random() % 9000, 'x'));
    }
    if (random() % 5 == 0) change.abort();
    else change.commit();
    if (random() % 4 == 0) held.insert_or_assign(static_cast<int>(random() % 3), file_.latest());
    if (random() % 7 == 0) held.erase(static_cast<int>(random() % 3));
    const space_report report = measured();
    ASSERT_EQ(sum_of(report), report.file_bytes) << "step " << step;
    std::optional<std::uint64_t> oldest;
    for (const auto& [key, generation] : held)
      if (generation.generation() < report.generation)
        oldest = std::min(generation.generation(), oldest.value_or(generation.generation()));
    EXPECT_EQ(report.oldest_read, oldest) << "step " << step;
    if (!oldest) {
      EXPECT_EQ(report.held_by_readers_bytes, 0u);
    }
  }
}

TEST_F(SpaceReport, GivesAnArrayItsElementsAndItsIndex) {
  write_new("dense", {.dtype = dtype::int32, .shape = {3000}}, full({3000}, 1));
  write_new("chunked", chunked({300}, {3}), test::counting({300}, dtype::int32));
  write_new("empty", {.dtype = dtype::int32, .shape = {0}}, full({0}, 1));
  const auto report = measured();
  ASSERT_EQ(report.arrays.size(), 3u);
  EXPECT_EQ(report.arrays[0].name, "chunked");
  EXPECT_EQ(report.arrays[0].data_bytes, 100 * 64u);  // of 12 bytes each
  EXPECT_EQ(report.arrays[0].index_bytes % 4096, 0u);
  EXPECT_GE(report.arrays[0].index_bytes, 2 * 4096u);  // a page has room for fewer than 100
  EXPECT_EQ(report.arrays[1].name, "dense");
  EXPECT_EQ(report.arrays[1].data_bytes, 3 * 4096u);
  EXPECT_EQ(report.arrays[1].index_bytes, 4096u);  // a checksum
  EXPECT_EQ(report.arrays[2].data_bytes + report.arrays[2].index_bytes, 0u);
}

TEST_F(SpaceReport, TellsWhatAReaderHolds) {
  constexpr std::uint64_t bytes = 4u << 20;
  constexpr index_t length = bytes / 4;
  write_new("a", {.dtype = dtype::int32, .shape = {length}}, full({length}, 1));
  auto reader = std::optional(file_.latest());
  const std::uint64_t read = reader->generation();
  const auto rewrite = [&](int value) {
    auto change = file_.begin();
    change.update("a").write(expr(value));
    change.commit();
  };
  // Without another reader, the previous generation is held once, and what is older is free.
  for (const int value : {2, 3, 4}) rewrite(value);
  auto report = measured();
  EXPECT_EQ(report.oldest_read, read);
  EXPECT_GE(report.held_by_readers_bytes, bytes);
  EXPECT_LT(report.held_by_readers_bytes, 2 * bytes);
  EXPECT_GE(report.previous_bytes, bytes);
  EXPECT_LT(report.previous_bytes, 2 * bytes);

  reader.reset();
  const auto after = measured();
  EXPECT_EQ(after.oldest_read, std::nullopt);
  EXPECT_EQ(after.held_by_readers_bytes, 0u);
  EXPECT_EQ(after.previous_bytes, report.previous_bytes);
  EXPECT_EQ(after.free_bytes, report.free_bytes + report.held_by_readers_bytes);
}

TEST_F(SpaceReport, TellsWhatAReaderOfAnotherHandleHolds) {
  constexpr index_t length = 1 << 20;
  write_new("a", {.dtype = dtype::int32, .shape = {length}}, full({length}, 1));
  const auto other = container::open(path_);
  const auto reader = other.latest();
  for (const int value : {2, 3}) {
    auto change = file_.begin();
    change.update("a").write(expr(value));
    change.commit();
  }
  const auto report = measured();
  EXPECT_EQ(report.oldest_read, reader.generation());
  EXPECT_GE(report.held_by_readers_bytes, 4u * length);
}

TEST_F(SpaceReport, OfANewContainerIsMetadata) {
  const auto report = measured();
  EXPECT_TRUE(report.arrays.empty());
  EXPECT_EQ(report.metadata_bytes, 13 * 4096u + 2 * 4096u);  // fixed pages, root page, space map
  EXPECT_EQ(report.free_bytes, report.file_bytes - report.metadata_bytes);
}

// Writes a copy of the container in which an array of complex128 has a dtype that nobody knows,
// with correct checksums.
void write_with_unknown_dtype(const std::string& source, const std::string& copy,
                              const std::string& name) {
  constexpr std::byte code_of_complex128{15};
  const fuzz::content sound = test::bytes_of_file(source);
  const fuzz::checksums sums(sound);
  const auto is_refused = [&](const std::string& other) {
    return test::code_of([&] { container::open(copy).latest().at(other); }) == errc::unsupported;
  };
  for (const std::uint64_t page : fuzz::covered_pages(sums)) {
    for (std::uint64_t place = page; place < std::min(page + 4096, sound.size()); ++place) {
      if (sound[place] != code_of_complex128) continue;
      fuzz::content changed = sound;
      changed[place] = std::byte{99};
      sums.correct(changed);
      std::ofstream(copy, std::ios::binary)
          .write(reinterpret_cast<const char*>(changed.data()),
                 static_cast<std::streamsize>(changed.size()));
      if (is_refused(name)) return;
    }
  }
  FAIL() << "no byte is the dtype of " << name;
}

TEST_F(SpaceReport, CountsArraysOfLaterVersionsTogether) {
  write_new("a", {.dtype = dtype::int32, .shape = {300}}, full({300}, 1));
  write_new("b", {.dtype = dtype::complex128, .shape = {300}}, full({300}, 1));
  write_new("c", chunked({300}, {30}), test::counting({300}, dtype::int32));
  const space_report before = measured();
  const std::string copy = directory_ / "later.shale";
  write_with_unknown_dtype(path_, copy, "b");
  const space_report later = container::open(copy).space();
  EXPECT_EQ(sum_of(later), later.file_bytes);
  EXPECT_EQ(later.unknown_bytes, 2 * 4096u + 4096u);  // its 4800 bytes, and their checksum
  ASSERT_EQ(later.arrays.size(), 3u);
  for (const std::size_t known : {0, 2}) {
    EXPECT_EQ(later.arrays[known].name, before.arrays[known].name);
    EXPECT_EQ(later.arrays[known].data_bytes, before.arrays[known].data_bytes);
    EXPECT_EQ(later.arrays[known].index_bytes, before.arrays[known].index_bytes);
    EXPECT_FALSE(later.arrays[known].problem);
  }
  EXPECT_EQ(later.arrays[1].name, "b");
  EXPECT_EQ(later.arrays[1].data_bytes + later.arrays[1].index_bytes, 0u);
  ASSERT_TRUE(later.arrays[1].problem);
  EXPECT_EQ(later.arrays[1].problem->code(), errc::unsupported);
  const std::string text = later.arrays[1].problem->what();
  EXPECT_NE(text.find(copy), std::string::npos) << text;
  EXPECT_NE(text.find("array 'b'"), std::string::npos) << text;
  EXPECT_EQ(later.metadata_bytes, before.metadata_bytes);
  EXPECT_EQ(later.previous_bytes, before.previous_bytes);
  EXPECT_EQ(later.free_bytes, before.free_bytes);
}

TEST_F(SpaceReport, IsRefusedWhereMetadataIsDamaged) {
  write_new("a", chunked({300}, {3}), test::counting({300}, dtype::int32));
  // The index lies after the chunks, in the next pages.
  std::uint64_t index = 0;
  for (const auto& chunk : at("a").stored_chunks())
    index = std::max(index, (chunk.offset + chunk.stored_bytes + 4095) / 4096 * 4096);
  test::flip_byte(path_, index + 40);
  const auto opened = container::open(path_);
  EXPECT_EQ(test::code_of([&] { opened.space(); }), errc::corrupt);
  EXPECT_EQ(test::code_of([&] { opened.latest().at("a").stored_chunks(); }), errc::corrupt);
}

}  // namespace
}  // namespace shale
