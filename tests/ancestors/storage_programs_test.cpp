// The programs that the documents of Torch's TH and of SimpleTensor show for storages and
// allocators, written with Shale.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "shale/ops.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

tensor doubles(const storage& bytes) {
  return tensor(bytes, dtype::float64,
                layout({static_cast<index_t>(bytes.size_bytes() / sizeof(double))}));
}

TEST(AncestorsStorage, IsMadeInSeveralWays) {
  const storage sized = storage::allocate(5 * sizeof(double));
  EXPECT_EQ(sized.size_bytes(), 40u);
  const tensor valued = tensor::full({5}, 2.5, dtype::float64);
  EXPECT_EQ(doubles(valued.storage()).at({4}), scalar(2.5));

  std::vector<double> elements{1, 2, 3, 4};
  const storage borrowed =
      storage::adopt(elements.data(), elements.size() * sizeof(double), nullptr);
  EXPECT_EQ(doubles(borrowed).at({2}), scalar(3.0));
  const storage shared = borrowed.slice(sizeof(double), 2 * sizeof(double));
  fill(doubles(shared), 9);
  EXPECT_EQ(elements, (std::vector<double>{1, 9, 9, 4}));
}

TEST(AncestorsStorage, CountsWritesAndHandles) {
  const tensor x = tensor::zeros({4, 4}, dtype::float32);
  const std::uint64_t before = x.storage().version();
  fill(x.select(0, 1), 1);
  EXPECT_GT(x.storage().version(), before);
  const std::uint64_t between = x.storage().version();
  eval_into(x.swapaxes(0, 1), expr(x) * 2);
  EXPECT_GT(x.storage().version(), between);

  EXPECT_EQ(x.storage().use_count(), 1);
  {
    const tensor view = x.select(0, 1);
    EXPECT_EQ(x.storage().use_count(), 2);
  }
  EXPECT_EQ(x.storage().use_count(), 1);
}

TEST(AncestorsStorage, OfAFileIsMappedChangedAndMappedAgain) {
  const test::scratch_directory folder;
  const std::string path = folder / "numbers";
  {
    const storage file = create_file(path, 3 * sizeof(double));
    fill(doubles(file), 1);
  }
  {
    const storage file = map_file(path, {.access = access::read_write});
    doubles(file).set({1}, 5);
    file.flush();
  }
  EXPECT_TRUE(equal_bits(doubles(map_file(path)), tensor::of<double>({1, 5, 1})));
}

TEST(AncestorsAllocator, HandsOutUniqueAndSharedObjects) {
  memory_pool pool;
  struct pair {
    pair(int first_number, std::string second_text)
        : first(first_number), second(std::move(second_text)) {}
    int first;
    std::string second;
  };
  {
    const auto one = pool.make_unique<pair>(7, "seven");
    EXPECT_EQ(one->first, 7);
    EXPECT_EQ(one->second, "seven");
    const auto numbers = pool.make_unique<int[]>(1000);
    EXPECT_EQ(numbers[999], 0);
    const auto raw = pool.make_unique_for_overwrite<double[]>(1000);
    const std::shared_ptr<pair> shared = pool.make_shared<pair>(8, "eight");
    EXPECT_EQ(shared->second, "eight");
    const std::shared_ptr<int[]> more = pool.make_shared<int[]>(10);
    EXPECT_GE(pool.statistics().live_bytes, 1000 * (sizeof(int) + sizeof(double)));
    EXPECT_FALSE(pool.all_clear());
  }
  EXPECT_TRUE(pool.all_clear());
}

TEST(AncestorsAllocator, GivesFreedBlocksToEqualSizes) {
  memory_pool pool;
  auto first = pool.make_unique_for_overwrite<char[]>(100'000);
  const void* const address = first.get();
  first.reset();
  const auto second = pool.make_unique_for_overwrite<char[]>(100'000);
  EXPECT_EQ(second.get(), address);
}

}  // namespace
}  // namespace shale
