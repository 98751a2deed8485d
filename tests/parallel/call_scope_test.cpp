#include "parallel/executor/call_scope.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "parallel/executor/tile_loop.hpp"

namespace shale::parallel {
namespace {

TEST(CallScope, IsWhatTheThreadIsInsideOf) {
  int outer = 0, inner = 0;
  EXPECT_FALSE(call_scope::inside(&outer));
  {
    const call_scope first(&outer);
    {
      const call_scope second(&inner);
      EXPECT_TRUE(call_scope::inside(&outer));
      EXPECT_TRUE(call_scope::inside(&inner));
    }
    EXPECT_FALSE(call_scope::inside(&inner));
    std::thread([&] { EXPECT_FALSE(call_scope::inside(&outer)); }).join();
  }
  EXPECT_FALSE(call_scope::inside(&outer));
}

// Workers of a loop, and of loops inside it, are inside the calls of its caller, and leave them at
// its end.
TEST(CallScope, IsHandedOnToWorkers) {
  executor on({.threads = 4});
  int outer = 0, inner = 0;
  std::atomic<int> outside = 0, left_behind = 0;
  {
    const call_scope first(&outer);
    parallel_for_tiles(on, 64, [&](index_t, int) {
      if (call_scope::inside(&inner)) ++left_behind;
      if (!call_scope::inside(&outer)) ++outside;
      const call_scope second(&inner);
      parallel_for_tiles(on, 8, [&](index_t, int) {
        if (!call_scope::inside(&outer) || !call_scope::inside(&inner)) ++outside;
      });
    });
  }
  parallel_for_tiles(on, 64, [&](index_t, int) {
    if (call_scope::inside(&outer) || call_scope::inside(&inner)) ++left_behind;
  });
  EXPECT_EQ(outside, 0);
  EXPECT_EQ(left_behind, 0);
}

}  // namespace
}  // namespace shale::parallel
