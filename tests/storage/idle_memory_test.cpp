// When idle memory of a pool goes back to the system: the numbers of the rule, at any time.
#include "storage/pool/heap/idle_memory.hpp"

#include <gtest/gtest.h>

namespace shale::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(IdleMemory, AtLeast64MiBOrHalfOfTheLiveBytesMayBeIdle) {
  EXPECT_EQ(idle_bytes_allowed(0), 64 * mib);
  EXPECT_EQ(idle_bytes_allowed(-5), 64 * mib) << "counts of threads may be subtracted early";
  EXPECT_EQ(idle_bytes_allowed(128 << 20), 64 * mib);
  EXPECT_EQ(idle_bytes_allowed(300 << 20), 150 * mib);
}

TEST(IdleMemory, AnExcessCountsAfterItLastedForASecond) {
  idle_excess excess;
  const auto start = pool_clock::now();
  EXPECT_FALSE(excess.lasts(101, 100, start));
  EXPECT_FALSE(excess.lasts(101, 100, start + 999ms));
  EXPECT_TRUE(excess.lasts(101, 100, start + 1000ms));
  EXPECT_TRUE(excess.lasts(101, 100, start + 1500ms));
  EXPECT_FALSE(excess.lasts(100, 100, start + 2000ms)) << "as much as is allowed";
  EXPECT_FALSE(excess.lasts(101, 100, start + 2500ms)) << "the second begins again";
}

system_memory stalled_for(std::chrono::microseconds time) {
  return {.total_bytes = 1600 * mib, .available_bytes = 800 * mib, .stalled = time};
}

TEST(MemoryPressure, IsHighWhileMoreThanATenthOfTheTimeIsWaitedFor) {
  memory_pressure pressure;
  const auto start = pool_clock::now();
  EXPECT_FALSE(pressure.is_high(stalled_for(100s), start)) << "what was before is not news";
  EXPECT_FALSE(pressure.is_high(stalled_for(100s + 50ms), start + 500ms));
  EXPECT_TRUE(pressure.is_high(stalled_for(100s + 101ms), start + 1000ms));
  EXPECT_FALSE(pressure.is_high(stalled_for(100s + 101ms), start + 1500ms));
  EXPECT_FALSE(pressure.is_high({}, start + 2000ms));
  EXPECT_FALSE(pressure.is_high(stalled_for(200s), start + 2500ms)) << "nothing to compare with";
}

TEST(MemoryPressure, IsHighWhileLittleIsAvailable) {
  memory_pressure pressure;
  const auto now = pool_clock::now();
  EXPECT_FALSE(pressure.is_high({.total_bytes = 1600 * mib, .available_bytes = 100 * mib}, now));
  EXPECT_TRUE(pressure.is_high({.total_bytes = 1600 * mib, .available_bytes = 99 * mib}, now));
  EXPECT_FALSE(pressure.is_high({.available_bytes = mib}, now));
}

}  // namespace
}  // namespace shale::detail
