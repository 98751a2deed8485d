// Compares small calls, which run by plans that the thread keeps, with the general way of the
// engine.
#pragma once

#include <gtest/gtest.h>

#include "shale/executor.hpp"

namespace shale::test {

/// Ignores all reports. An executor that reports to a sink always takes the general way.
class silent_sink final : public progress_sink {
 public:
  void advance(std::uint64_t, std::uint64_t) override {}
};

/// Runs `call` on both executors and expects that both count the same.
template <class Call>
void expect_same_counts(executor& one, executor& other, Call call) {
  const auto counted = [&](executor& on) {
    const auto before = on.statistics();
    const executor::scope within(on);
    call();
    auto after = on.statistics();
    after.passes -= before.passes;
    after.tiles -= before.tiles;
    after.bytes_read -= before.bytes_read;
    after.bytes_written -= before.bytes_written;
    return after;
  };
  const auto got = counted(one), wanted = counted(other);
  EXPECT_EQ(got.passes, wanted.passes);
  EXPECT_EQ(got.tiles, wanted.tiles);
  EXPECT_EQ(got.bytes_read, wanted.bytes_read);
  EXPECT_EQ(got.bytes_written, wanted.bytes_written);
}

}  // namespace shale::test
