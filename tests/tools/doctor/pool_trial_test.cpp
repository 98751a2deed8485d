// A trial returns the memory that it takes from the pool, and the statistics show it.
#include "doctor/facts/pool_trial.hpp"

#include <gtest/gtest.h>

#include "support/scratch_directory.hpp"

namespace shale::tools {
namespace {

constexpr std::size_t bytes = std::size_t{8} << 20;

TEST(PoolTrial, TakesMemoryTwiceAndGivesAllOfItBack) {
  memory_pool pool;
  const pool_trial trial = try_pool(pool, bytes);
  ASSERT_EQ(trial.steps.size(), 5u);
  const auto at = [&](std::size_t step) -> const pool_statistics& {
    return trial.steps[step].pool;
  };
  EXPECT_EQ(at(0).live_bytes, 0u);
  EXPECT_GE(at(1).live_bytes, bytes);
  EXPECT_EQ(at(1).misses, 1u);
  EXPECT_EQ(at(2).live_bytes, 0u);
  EXPECT_GE(at(2).cached_bytes, bytes);
  EXPECT_GE(at(3).live_bytes, bytes);
  EXPECT_EQ(at(3).misses, 1u);
  EXPECT_EQ(at(3).hits, 1u);
  EXPECT_EQ(at(4).live_bytes, 0u);
  EXPECT_EQ(at(4).idle_bytes, 0u);
  EXPECT_TRUE(trial.all_clear);
  EXPECT_EQ(trial.bytes, bytes);
  EXPECT_EQ(trial.failure, "");
  ASSERT_TRUE(trial.huge_bytes) << trial.huge_bytes.why;
  EXPECT_LE(*trial.huge_bytes, bytes);
}

TEST(PoolTrial, SeesWhatOthersHaveNotGivenBack) {
  memory_pool pool;
  const auto kept = pool.make_unique<char[]>(100'000);
  EXPECT_FALSE(try_pool(pool, bytes).all_clear);
}

TEST(PoolTrial, SaysWhyNothingCouldBeTaken) {
  memory_pool pool({.limit_bytes = bytes / 2});
  const pool_trial trial = try_pool(pool, bytes);
  EXPECT_EQ(trial.bytes, 0u);
  EXPECT_NE(trial.failure, "");
  EXPECT_TRUE(trial.all_clear);
}

TEST(PoolTrial, WithoutProcDoesNotKnowThePages) {
  memory_pool pool;
  const test::scratch_directory empty;
  const pool_trial trial = try_pool(pool, bytes, system_tree(empty.path()));
  EXPECT_EQ(trial.huge_bytes.why, "/proc/self/smaps: No such file or directory");
  EXPECT_TRUE(trial.all_clear);
}

}  // namespace
}  // namespace shale::tools
