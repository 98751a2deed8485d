// Which chunks a file stores, and where: array::stored_chunks and array::read_stored_chunk.
#include "shale/stored_chunk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "array/test_support.hpp"

namespace shale {
namespace {

using test::code_of;

class StoredChunk : public test::fresh_container {
 protected:
  static array_spec spec(const dims& shape, const dims& chunk, const codec_spec& codec) {
    return {.dtype = dtype::int32,
            .shape = shape,
            .kind = array_kind::chunked,
            .chunk_shape = chunk,
            .codec = codec,
            .fill_value = -1};
  }

  // What the file holds at the place of a chunk.
  std::vector<std::byte> bytes_at(const stored_chunk& chunk) const {
    const auto all = test::bytes_of_file(path_);
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(chunk.offset);
    return {first, first + static_cast<std::ptrdiff_t>(chunk.stored_bytes)};
  }

  static constexpr codec_spec raw{.shuffle = shuffle_mode::none, .compression = std::nullopt};
};

// The first index of the chunk's elements, without the library's arithmetic.
index_t start_of(const stored_chunk& chunk, const dims& extents, index_t axis) {
  index_t start = 0;
  for (index_t i = 0; i < chunk.index[axis]; ++i) start += extents[axis];
  return start;
}

TEST_F(StoredChunk, IsListedWithTheBytesOfItsElements) {
  std::mt19937 random(3);
  for (int round = 0; round < 12; ++round) {
    const dims shape{1 + static_cast<index_t>(random() % 20),
                     1 + static_cast<index_t>(random() % 9)};
    const dims chunk{1 + static_cast<index_t>(random() % 6),
                     1 + static_cast<index_t>(random() % 4)};
    const dims grid{(shape[0] + chunk[0] - 1) / chunk[0], (shape[1] + chunk[1] - 1) / chunk[1]};
    const std::string name = "a" + std::to_string(round);
    auto change = file_.begin();
    const auto made = change.create(name, spec(shape, chunk, raw));
    std::vector<dims> wanted;  // in row-major order
    for (index_t i = 0; i < grid[0]; ++i)
      for (index_t j = 0; j < grid[1]; ++j) {
        if (random() % 2 == 0) continue;
        wanted.push_back({i, j});
        const region cell{{i * chunk[0], j * chunk[1]}, {1, 1}};
        made.write(cell, full({1, 1}, static_cast<int>(i * 100 + j)));
      }
    change.commit();

    const auto listed = at(name).stored_chunks();
    ASSERT_EQ(listed.size(), wanted.size());
    for (std::size_t k = 0; k < listed.size(); ++k) {
      const stored_chunk& found = listed[k];
      EXPECT_EQ(found.index, wanted[k]);
      EXPECT_TRUE(found.raw);
      EXPECT_EQ(found.offset % 64, 0u);
      for (const index_t axis : {0, 1}) {
        EXPECT_EQ(found.part.start[axis], start_of(found, chunk, axis));
        EXPECT_EQ(found.part.shape[axis],
                  std::min(chunk[axis], shape[axis] - found.part.start[axis]));
      }
      // The written element comes first, and everything else is the fill value.
      std::vector<std::int32_t> elements(static_cast<std::size_t>(chunk[0] * chunk[1]), -1);
      elements[0] = static_cast<std::int32_t>(wanted[k][0] * 100 + wanted[k][1]);
      const auto bytes = bytes_at(found);
      ASSERT_EQ(bytes.size(), elements.size() * sizeof(std::int32_t));
      EXPECT_EQ(std::memcmp(bytes.data(), elements.data(), bytes.size()), 0);
      EXPECT_EQ(at(name).read_stored_chunk(found.index), bytes);
    }
  }
}

TEST_F(StoredChunk, ListsCanBeTakenInParts) {
  write_new("a", spec({40, 30}, {4, 3}, {}), test::counting({40, 30}, dtype::int32));
  const array a = at("a");
  const auto all = a.stored_chunks();
  ASSERT_EQ(all.size(), 100u);
  std::uint64_t bytes = 0;
  for (const auto& chunk : all) bytes += chunk.stored_bytes;
  EXPECT_EQ(bytes, a.stored_bytes());
  for (const std::size_t limit : {std::size_t{1}, std::size_t{7}, std::size_t{100}}) {
    std::optional<dims> after;
    std::size_t seen = 0;
    while (true) {
      const auto part = a.stored_chunks(after, limit);
      if (part.empty()) break;
      EXPECT_EQ(part.size(), std::min(limit, all.size() - seen));
      for (const auto& chunk : part) EXPECT_EQ(chunk.offset, all.at(seen++).offset);
      after = part.back().index;
    }
    EXPECT_EQ(seen, all.size());
  }
  EXPECT_TRUE(a.stored_chunks(std::nullopt, 0).empty());
  // A chunk that is not stored may stand before the rest of the list, too.
  auto change = file_.begin();
  change.resize("a", {44, 30});
  change.commit();
  EXPECT_EQ(at("a").stored_chunks().size(), 100u);
  EXPECT_TRUE(at("a").stored_chunks(dims{10, 2}).empty());
  EXPECT_TRUE(at("a").read_stored_chunk({10, 2}).empty());
}

TEST_F(StoredChunk, SaysWhetherItIsCoded) {
  auto change = file_.begin();
  const auto made = change.create("a", spec({2, 4096}, {1, 4096}, {}));
  std::mt19937 random(5);
  tensor noise = tensor::zeros({1, 4096}, dtype::int32);
  for (auto& value : noise.elements<std::int32_t>()) value = static_cast<std::int32_t>(random());
  made.write({{0, 0}, {1, 4096}}, noise);
  made.write({{1, 0}, {1, 4096}}, full({1, 4096}, 7));
  change.commit();
  const auto listed = at("a").stored_chunks();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_TRUE(listed[0].raw);
  EXPECT_EQ(listed[0].stored_bytes, 4 * 4096u);
  EXPECT_FALSE(listed[1].raw);
  EXPECT_LT(listed[1].stored_bytes, 400u);
}

TEST_F(StoredChunk, StaysInItsPlaceWhileAnArrayOfItsGenerationLives) {
  write_new("a", spec({64}, {8}, raw), test::counting({64}, dtype::int32));
  const array before = at("a");
  const auto listed = before.stored_chunks();
  const auto bytes = bytes_at(listed[3]);
  for (int step = 0; step < 5; ++step) {
    auto change = file_.begin();
    change.update("a").write(full({64}, step));
    change.commit();
  }
  EXPECT_EQ(bytes_at(listed[3]), bytes);
  EXPECT_EQ(before.stored_chunks()[3].offset, listed[3].offset);
  EXPECT_NE(at("a").stored_chunks()[3].offset, listed[3].offset);
}

TEST_F(StoredChunk, OfNoElementOrNoAxisIsListed) {
  write_new("none", spec({0, 5}, {2, 2}, raw), full({0, 5}, 1));
  EXPECT_TRUE(at("none").stored_chunks().empty());
  write_new("one", spec({}, {}, raw), full({}, 9));
  const auto listed = at("one").stored_chunks();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].index, dims{});
  EXPECT_EQ(at("one").read_stored_chunk({}).size(), 4u);
}

TEST_F(StoredChunk, IsRefusedWhereThereIsNone) {
  write_new("dense", {.dtype = dtype::int32, .shape = {4}}, full({4}, 1));
  write_new("a", spec({9, 9}, {4, 4}, raw), full({9, 9}, 1));
  const array a = at("a");
  EXPECT_EQ(code_of([&] { at("dense").stored_chunks(); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { at("dense").read_stored_chunk({0}); }), errc::invalid_argument);
  for (const dims& index : {dims{}, dims{0}, dims{0, 0, 0}, dims{3, 0}, dims{0, 3}, dims{-1, 0}}) {
    EXPECT_EQ(code_of([&] { a.stored_chunks(index); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { a.read_stored_chunk(index); }), errc::invalid_argument);
  }
  auto change = file_.begin();
  EXPECT_EQ(change.find("a")->stored_chunks().size(), 9u);
  change.update("a").write({{0, 0}, {1, 1}}, full({1, 1}, 2));
  EXPECT_EQ(code_of([&] { change.find("a")->stored_chunks(); }), errc::invalid_argument);
}

TEST_F(StoredChunk, IsListedWhereItsBytesAreDamaged) {
  write_new("a", spec({64}, {8}, raw), test::counting({64}, dtype::int32));
  const auto listed = at("a").stored_chunks();
  test::flip_byte(path_, listed[2].offset + 5);
  EXPECT_EQ(at("a").stored_chunks().size(), 8u);
  EXPECT_EQ(code_of([&] { at("a").read_stored_chunk({2}); }), errc::corrupt);
  EXPECT_EQ(at("a").read_stored_chunk({3}).size(), 32u);
}

}  // namespace
}  // namespace shale
