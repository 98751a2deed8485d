// Tests which bytes are compared with their stored checksums: all bytes that a tensor touches, and
// none far from them.
#include "parallel/mapped/stored_checksums.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "shale/apply.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "storage/blocks/segment_checksums.hpp"
#include "storage/blocks/storage_block.hpp"
#include "support/random_layouts.hpp"
#include "support/scratch_directory.hpp"

namespace shale::parallel {
namespace {

// Remembers the ranges that it was asked to compare, as positions in the owner.
class noting_sums final : public detail::segment_checksums {
 public:
  void compare(byte_range range) override {
    const std::lock_guard lock(mutex_);
    ranges.push_back(range);
    pools.insert(&executor::current().pool());
  }
  std::vector<byte_range> ranges;
  std::set<const memory_pool*> pools;  // of the executors that the threads were bound to

 private:
  std::mutex mutex_;
};

struct noted_storage {
  explicit noted_storage(std::size_t size) : bytes(storage::allocate(size)) {
    detail::storage_block::of(bytes)->set_checksums(sums);
  }
  std::shared_ptr<noting_sums> sums = std::make_shared<noting_sums>();
  storage bytes;
};

executor& comparing() {
  static executor on({.threads = 3, .checksums = checksum_use::compared});
  return on;
}

TEST(StoredChecksums, AreComparedWhereverAnElementLies) {
  constexpr index_t scale = 600'007;  // pieces of some layouts are far apart
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    test::random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 3, .longest = 4});
    const auto placed = test::random_layout(choose, shape);
    dims strides = placed.geometry.strides();
    for (index_t& stride : strides) stride *= scale;
    const auto size = static_cast<std::size_t>(std::max<index_t>(placed.positions * scale, 1));
    const noted_storage noted(size + 4096);
    const tensor values(noted.bytes.slice(4096, size), dtype::uint8,
                        layout(shape, strides, placed.geometry.offset() * scale));
    compare_checksums(values, comparing());
    const auto compared = [&](index_t position) {
      for (const auto& range : noted.sums->ranges)
        if (static_cast<std::size_t>(position) >= range.offset &&
            static_cast<std::size_t>(position) < range.offset + range.bytes)
          return true;
      return false;
    };
    dims at = dims::filled(shape.size(), 0);
    for (index_t left = values.size(); left > 0; --left) {
      index_t position = 4096 + values.offset();
      for (index_t axis = 0; axis < shape.size(); ++axis) position += at[axis] * strides[axis];
      ASSERT_TRUE(compared(position)) << position;
      for (index_t axis = shape.size() - 1; axis >= 0 && ++at[axis] == shape[axis]; --axis)
        at[axis] = 0;
    }
    for (const auto& range : noted.sums->ranges) {
      ASSERT_GT(range.bytes, 0u);
      ASSERT_GE(range.offset, 4096u);
      ASSERT_LE(range.offset + range.bytes, noted.bytes.size_bytes());
    }
  }
}

TEST(StoredChecksums, FarFromEveryElementAreLeftAlone) {
  const noted_storage noted(std::size_t{256} << 20);
  const tensor corners(noted.bytes, dtype::uint8, layout({2, 4}, {255 << 20, 1}, 0));
  compare_checksums(corners, comparing());
  std::size_t compared = 0;
  for (const auto& range : noted.sums->ranges) compared += range.bytes;
  EXPECT_EQ(compared, 8u);
}

TEST(StoredChecksums, AreComparedBeforeElementsAreVisitedInOrder) {
  const noted_storage noted(4096);
  const executor::scope within(comparing());
  std::size_t visited = 0;
  apply_in_order(
      [&](std::uint8_t) {
        EXPECT_FALSE(noted.sums->ranges.empty());
        ++visited;
      },
      tensor(noted.bytes, dtype::uint8, layout({4096})));
  EXPECT_EQ(visited, 4096U);
  std::size_t compared = 0;
  for (const auto& range : noted.sums->ranges) compared += range.bytes;
  EXPECT_EQ(compared, 4096U);
}

// What a comparison allocates comes from the pool of the call, also on threads that read ahead.
TEST(StoredChecksums, AreComparedInTheExecutorOfTheCall) {
  const test::scratch_directory directory;
  const storage bytes = create_file(directory / "values", std::size_t{32} << 20);
  const auto sums = std::make_shared<noting_sums>();
  detail::storage_block::of(bytes)->set_checksums(sums);
  memory_pool pool;
  executor on({.threads = 2,
               .memory_bytes = std::size_t{2} << 20,
               .pool = &pool,
               .checksums = checksum_use::compared});
  const executor::scope within(on);
  const tensor values(bytes, dtype::uint8, layout({32 << 20}));
  const std::uint64_t before = on.statistics().windows;
  apply([](std::uint8_t) {}, values);
  EXPECT_GT(on.statistics().windows, before + 1) << "it was streamed";
  EXPECT_EQ(sums->pools, std::set<const memory_pool*>{&pool});
}

// The number of tiles does not depend on whether checksums are compared.
TEST(StoredChecksums, AreNoTilesOfTheStatistics) {
  const noted_storage noted(std::size_t{16} << 20);
  const tensor values(noted.bytes, dtype::uint8, layout({16 << 20}));
  const std::uint64_t before = comparing().statistics().tiles;
  compare_checksums(values, comparing());
  EXPECT_GT(noted.sums->ranges.size(), 1U);
  EXPECT_EQ(comparing().statistics().tiles, before);
}

TEST(StoredChecksums, AreLeftAloneWhereTheExecutorTrustsThem) {
  const noted_storage noted(4096);
  executor trusting({.threads = 2});
  compare_checksums(tensor(noted.bytes, dtype::uint8, layout({4096})), trusting);
  EXPECT_TRUE(noted.sums->ranges.empty());
}

}  // namespace
}  // namespace shale::parallel
