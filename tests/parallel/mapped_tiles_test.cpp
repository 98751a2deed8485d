// Tests the tiles of a mapped tensor. The oracle is the file's own bytes.
#include "parallel/mapped/mapped_tiles.hpp"
#include "parallel/mapped/balanced_tile_shape.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "shale/mapped_file.hpp"
#include "shale/tile_source.hpp"
#include "support/failures.hpp"
#include "support/holds_once.hpp"
#include "support/random_layouts.hpp"
#include "support/scratch_directory.hpp"

namespace shale::parallel {
namespace {

class MappedTiles : public testing::Test {
 protected:
  // Makes a file of `count` numbers, each of which is its own position.
  storage counting_file(std::int64_t count) {
    storage bytes = create_file(path_, static_cast<std::size_t>(count) * 4,
                                {.existing = existing_file::replace});
    for (std::int64_t i = 0; i < count; ++i) at(bytes, i) = static_cast<std::int32_t>(i);
    return bytes;
  }

  static std::int32_t& at(storage& bytes, std::int64_t i) {
    return reinterpret_cast<std::int32_t*>(bytes.data())[i];
  }

  // Calls `body(index)` for every index of `shape`, row-major.
  template <class Body>
  static void for_each_index(const dims& shape, Body body) {
    dims index = dims::filled(shape.size(), 0);
    for (index_t n = 0; n < element_count(shape); ++n) {
      body(index);
      for (index_t axis = shape.size() - 1; axis >= 0; --axis) {
        if (++index[axis] < shape[axis]) break;
        index[axis] = 0;
      }
    }
  }

  static index_t position(const layout& where, const dims& index) {
    index_t result = where.offset();
    for (index_t axis = 0; axis < index.size(); ++axis)
      result += index[axis] * where.strides()[axis];
    return result;
  }

  test::scratch_directory directory_;
  std::string path_ = directory_ / "numbers";
};

TEST_F(MappedTiles, AreTheElementsOfTheTensorBothWays) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    test::random_choices choose(seed);
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = 12, .may_be_empty = false});
    const auto placed = test::random_layout(choose, shape, test::sharing::distinct);
    storage bytes = counting_file(placed.positions);
    const tensor values(bytes, dtype::int32, placed.geometry);
    dims tile_shape;
    dims grid;
    for (const index_t extent : shape) {
      tile_shape.push_back(choose(1, extent));
      grid.push_back(ceil_div(extent, tile_shape.back()));
    }
    mapped_tiles tiles(values, tile_shape);
    for_each_index(grid, [&](const dims& tile) {
      const region where = tile_region(shape, tile_shape, tile);
      tiles.prefetch(tile);
      tensor part = tensor::empty(where.shape, dtype::int32);
      tiles.load(tile, part);
      auto* element = reinterpret_cast<std::int32_t*>(const_cast<std::byte*>(part.data()));
      for_each_index(where.shape, [&](dims index) {
        for (index_t axis = 0; axis < index.size(); ++axis) index[axis] += where.start[axis];
        ASSERT_EQ(*element, position(placed.geometry, index));
        *element = -*element - 1;
        ++element;
      });
      tiles.store(tile, part);
    });
    tiles.finish();
    std::vector<std::int32_t> expected(static_cast<std::size_t>(placed.positions));
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::int32_t>(i);
    for_each_index(shape, [&](const dims& index) {
      auto& element = expected[static_cast<std::size_t>(position(placed.geometry, index))];
      element = -element - 1;
    });
    for (index_t i = 0; i < placed.positions; ++i)
      ASSERT_EQ(at(bytes, i), expected[static_cast<std::size_t>(i)]) << i;
  }
}

// Long pieces are read and written by the file's descriptor, if their pages are not in the cache;
// with O_APPEND it cannot do that, and the pages are used.
TEST_F(MappedTiles, ThatAreNotInThePageCacheAreTheElementsBothWays) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    test::random_choices choose(seed);
    dims shape{choose(1, 7), choose(1, 7), choose(1, 7)};
    shape[choose(0, 2)] = choose(700, 3000);
    const auto placed = test::random_layout(choose, shape, test::sharing::distinct);
    storage bytes = counting_file(placed.positions);
    bytes.flush();
    bytes.evict({0, bytes.size_bytes()}, eviction::system);
    const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | (seed % 3 == 2 ? O_APPEND : 0));
    ASSERT_GE(file, 0);
    const tensor values(map_file(file, {.access = access::read_write}), dtype::int32,
                        placed.geometry);
    ::close(file);
    dims tile_shape;
    dims grid;
    for (const index_t extent : shape) {
      tile_shape.push_back(choose(ceil_div(extent, index_t{3}), extent));
      grid.push_back(ceil_div(extent, tile_shape.back()));
    }
    mapped_tiles tiles(values, tile_shape);
    for_each_index(grid, [&](const dims& tile) {
      const tensor part = tensor::empty(tile_region(shape, tile_shape, tile).shape, dtype::int32);
      tiles.load(tile, part);
      auto* const elements = reinterpret_cast<std::int32_t*>(part.data());
      for (index_t k = 0; k < part.size(); ++k) elements[k] = -elements[k] - 1;
      tiles.store(tile, part);
    });
    tiles.finish();
    std::vector<bool> changed(static_cast<std::size_t>(placed.positions));
    for_each_index(shape, [&](const dims& index) {
      changed[static_cast<std::size_t>(position(placed.geometry, index))] = true;
    });
    for (index_t i = 0; i < placed.positions; ++i)
      ASSERT_EQ(at(bytes, i), changed[static_cast<std::size_t>(i)] ? -i - 1 : i) << i;
  }
}

TEST_F(MappedTiles, AreCutByBoxes) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    test::random_choices choose(seed);
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = 12, .may_be_empty = false});
    const auto placed = test::random_layout(choose, shape, test::sharing::distinct);
    const tensor values(counting_file(placed.positions), dtype::int32, placed.geometry);
    dims tile_shape;
    region box;
    for (const index_t extent : shape) {
      tile_shape.push_back(choose(1, extent));
      box.start.push_back(choose(0, extent - 1));
      box.shape.push_back(choose(1, extent - box.start.back()));
    }
    const mapped_tiles tiles(values, tile_shape);
    const tensor got = tensor::empty(box.shape, dtype::int32);
    tiles.load_box(box, got);
    const auto* element = reinterpret_cast<const std::int32_t*>(got.data());
    for_each_index(box.shape, [&](dims index) {
      for (index_t axis = 0; axis < index.size(); ++axis) index[axis] += box.start[axis];
      ASSERT_EQ(*element, position(placed.geometry, index));
      ++element;
    });
  }
}

TEST_F(MappedTiles, OfLostFilesAreErrors) {
  storage bytes = counting_file(1 << 20);
  const tensor values(bytes, dtype::int32, layout({1024, 1024}));
  if (bytes.kind() != storage_kind::file) GTEST_SKIP() << "this file system is not mapped";
  const mapped_tiles tiles(values.swapaxes(0, 1), {256, 256});
  const tensor part = tensor::empty({256, 256}, dtype::int32);
  ASSERT_EQ(::truncate(path_.c_str(), 2 << 20), 0);
  EXPECT_EQ(test::code_of([&] { tiles.load({0, 3}, part); }), errc::io);
  EXPECT_FALSE(bytes.failed());  // no kernel touched the lost bytes
}

// copies.1
TEST_F(MappedTiles, LeavePagesAsTheyFoundThem) {
  {
    const storage made = counting_file(4 << 20);
    made.flush();
  }
  const storage bytes = map_file(path_);
  const tensor values(bytes, dtype::int32, layout({2048, 2048}));
  const mapped_tiles tiles(values.swapaxes(0, 1), {1024, 1024});
  const tensor part = tensor::empty({1024, 1024}, dtype::int32);
  const byte_range all{0, bytes.size_bytes()};
  bytes.evict(all, eviction::system);
  if (bytes.kind() != storage_kind::file || bytes.resident_bytes() > 0)
    GTEST_SKIP() << "this file system is not mapped, or keeps what is evicted";
  EXPECT_TRUE(test::holds_once([&] {
    bytes.evict(all, eviction::system);
    tiles.load({0, 0}, part);
    return bytes.resident_bytes() <= bytes.size_bytes() / 8;
  }));
  // A box that cuts two tiles, and then one of them, whose pages the box has read in part. The box
  // consists of whole pages: others stay in the page cache, because neighbours need them, too.
  const region middle{{0, 512}, {1024, 1024}};
  EXPECT_TRUE(test::holds_once([&] {
    bytes.evict(all, eviction::system);
    const mapped_tiles cut(values.swapaxes(0, 1), {1024, 1024});
    cut.load_box(middle, part);
    cut.load({0, 1}, part);
    return bytes.resident_bytes() <= bytes.size_bytes() / 8;
  }));

  bytes.populate(all);
  if (bytes.resident_bytes() != bytes.size_bytes()) GTEST_SKIP() << "there is too little memory";
  EXPECT_TRUE(test::holds_once([&] {
    bytes.populate(all);
    const mapped_tiles again(values.swapaxes(0, 1), {1024, 1024});
    again.load({1, 1}, part);
    again.load_box(middle, part);
    return bytes.resident_bytes() == bytes.size_bytes();
  }));
}

// copies.1
TEST_F(MappedTiles, DropStoredPagesThatWereNotThereBefore) {
  storage bytes = counting_file(4 << 20);
  bytes.flush();
  const tensor values(bytes, dtype::int32, layout({2048, 2048}));
  const tensor part = tensor::zeros({1024, 1024}, dtype::int32);
  const byte_range all{0, bytes.size_bytes()};
  bytes.evict(all, eviction::system);
  if (bytes.kind() != storage_kind::file || bytes.resident_bytes() > 0)
    GTEST_SKIP() << "this file system is not mapped, or keeps what is evicted";
  const auto resident_after_a_store = [&] {
    mapped_tiles tiles(values.swapaxes(0, 1), {1024, 1024});
    tiles.store({0, 1}, part);
    tiles.finish();
    return bytes.resident_bytes();
  };
  EXPECT_TRUE(test::holds_once([&] {
    bytes.evict(all, eviction::system);
    return resident_after_a_store() <= bytes.size_bytes() / 8;
  }));
  bytes.populate(all);
  if (bytes.resident_bytes() != bytes.size_bytes()) GTEST_SKIP() << "there is too little memory";
  EXPECT_TRUE(test::holds_once([&] {
    bytes.populate(all);
    return resident_after_a_store() == bytes.size_bytes();
  }));
}

dims balanced(const dims& shape, const std::vector<dims>& strides, index_t elements_max) {
  std::vector<plan_operand> operands;
  for (const auto& each : strides) operands.push_back({layout(shape, each, 0), 4});
  return balanced_tile_shape(operands, dims::filled(shape.size(), 1), elements_max);
}

TEST(BalancedTileShape, IsASquareOfTransposes) {
  const dims shape{100'000, 200'000};
  const std::vector<dims> strides{{200'000, 1}, {1, 100'000}};
  EXPECT_EQ(balanced(shape, strides, 1 << 20), (dims{1024, 1024}));
  EXPECT_EQ(balanced(shape, strides, 1 << 21), (dims{1024, 2048}));
  EXPECT_EQ(balanced(shape, strides, index_t{1} << 50), (dims{16384, 16384}));
  EXPECT_EQ(balanced(shape, strides, 1), (dims{1, 1}));
}

TEST(BalancedTileShape, GrowsFromWhatIsGiven) {
  const std::vector<plan_operand> operands{{layout({1000, 30'000}, {30'000, 1}, 0), 4}};
  EXPECT_EQ(balanced_tile_shape(operands, {48, 48}, index_t{1} << 50), (dims{48, 24'576}));
  EXPECT_EQ(balanced_tile_shape(operands, {48, 48}, 48 * 100), (dims{48, 96}));
  EXPECT_EQ(balanced_tile_shape(operands, {48, 48}, 1), (dims{48, 48}));
}

TEST(BalancedTileShape, CountsPiecesOverSeveralAxes) {
  // The orders are (height, width, channels) and (channels, height, width); a row of channels is
  // short.
  const dims shape{5000, 7000, 16};
  const std::vector<dims> strides{{7000 * 16, 16, 1}, {7000, 1, 5000 * 7000}};
  const dims tile = balanced(shape, strides, index_t{1} << 50);
  EXPECT_EQ(tile[2], 16);
  EXPECT_GE(tile[1] * tile[2] * 4, 65536);
  EXPECT_GE(tile[0] * tile[1] * 4, 65536);
}

TEST(BalancedTileShape, StaysInsideTheShapeAndTheLimit) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    test::random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.longest = 3000, .may_be_empty = false});
    if (shape.empty()) continue;
    const std::vector<dims> strides{
        test::random_layout(choose, shape, test::sharing::distinct).geometry.strides(),
        test::random_layout(choose, shape, test::sharing::distinct).geometry.strides()};
    const index_t most = index_t{1} << choose(0, 30);
    const dims tile = balanced(shape, strides, most);
    EXPECT_LE(element_count(tile), most);
    for (index_t axis = 0; axis < shape.size(); ++axis) {
      EXPECT_GE(tile[axis], 1);
      EXPECT_LE(tile[axis], shape[axis]);
    }
  }
}

}  // namespace
}  // namespace shale::parallel
