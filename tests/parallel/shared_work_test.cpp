// Tests what becomes of children that are forked inside a call. Every case runs in a process of its
// own, which must end.
#include "parallel/executor/shared_work.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/executor/tile_loop.hpp"
#include "parallel/ways/tiled_operands.hpp"
#include "shale/apply.hpp"
#include "shale/mapped_file.hpp"
#include "support/bounded.hpp"
#include "support/child_threads.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::expect_to_end;

// Forks, and returns 0 in the child, which an alarm ends if it waits for ever.
pid_t forked() {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(20);
  test::start_no_housekeeper();
  return 0;
}

// The exit status of a child, or minus the signal that ended it.
int end_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void await(const std::atomic<int>& number, int wanted) {
  while (number < wanted) std::this_thread::yield();
}

// Calls `leave` in a forked child, while another thread is inside the other tile of the loop.
// Either the caller's thread forks, or a helper.
template <class Leave>
void fork_in_a_tile(bool by_caller, Leave leave) {
  executor on({.threads = 2});
  const auto caller = std::this_thread::get_id();
  std::atomic<int> inside = 0, ended = 0;
  parallel::parallel_for_tiles(on, 2, [&](index_t, int) {
    ++inside;
    await(inside, 2);
    if ((std::this_thread::get_id() == caller) != by_caller) return await(ended, 1);
    const pid_t child = forked();
    if (child == 0) return leave();
    EXPECT_EQ(end_of(child), -SIGABRT);
    ++ended;
  });
  EXPECT_EQ(ended, 1);
}

// loop.6
TEST(SharedWork, AChildThatReturnsIntoItEnds) {
  for (const bool by_caller : {true, false})
    expect_to_end([by_caller] { fork_in_a_tile(by_caller, [] {}); });
}

TEST(SharedWork, AChildThatThrowsIntoItEnds) {
  for (const bool by_caller : {true, false})
    expect_to_end([by_caller] { fork_in_a_tile(by_caller, [] { throw 5; }); });
}

// The call inside has no helpers, but the one around it has.
TEST(SharedWork, AChildThatReturnsIntoACallInsideItEnds) {
  expect_to_end([] {
    executor outer({.threads = 2}), inner({.threads = 1});
    std::atomic<int> inside = 0, ended = 0;
    parallel::parallel_for_tiles(outer, 2, [&](index_t tile, int) {
      ++inside;
      await(inside, 2);
      if (tile == 0) return await(ended, 1);
      parallel::parallel_for_tiles(inner, 3, [&](index_t number, int) {
        if (number != 1) return;
        const pid_t child = forked();
        if (child == 0) return;
        EXPECT_EQ(end_of(child), -SIGABRT);
        ++ended;
      });
    });
    EXPECT_EQ(ended, 1);
  });
}

TEST(SharedWork, AChildThatAProgressSinkForkedEnds) {
  expect_to_end([] {
    struct forking final : progress_sink {
      void advance(std::uint64_t, std::uint64_t) override {
        if (ended > 0) return;
        await(inside, 1);
        const pid_t child = forked();
        if (child == 0) return;
        EXPECT_EQ(end_of(child), -SIGABRT);
        ++ended;
      }
      std::atomic<int> inside = 0, ended = 0;
    } sink;
    executor on({.threads = 2, .progress = &sink});
    parallel::parallel_for_tiles(on, 2,
                                 [&](index_t tile, int) {
                                   if (tile == 0) return;
                                   ++sink.inside;
                                   await(sink.ended, 1);
                                 },
                                 {.progress_bytes = 2});
    EXPECT_EQ(sink.ended, 1);
  });
}

// A sink of two tiles, whose first store forks.
class forking_sink final : public tile_source {
 public:
  shale::dtype dtype() const noexcept override { return dtype::float32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  void load(const dims&, const tensor&) const override { ADD_FAILURE() << "a tile was loaded"; }
  void store(const dims&, const tensor&) override {
    if (in_child_) std::_Exit(1);
    if (stored_++ > 0) return;
    child_ = forked();
    in_child_ = child_ == 0;
  }
  pid_t child() const { return child_; }
  bool in_child() const { return in_child_; }
  int stored() const { return stored_; }

 private:
  dims shape_{20};
  dims tile_shape_{10};
  pid_t child_ = -1;
  bool in_child_ = false;
  int stored_ = 0;
};

// The child does not go on with the next tile of the unit.
TEST(SharedWork, AChildThatASinkOfTilesForkedEnds) {
  expect_to_end([] {
    forking_sink sink;
    const parallel::tiled_elements tiles{.sink = &sink};
    const std::vector<parallel::loop_operand> operands{
        {.values = tensor::zeros({20}, dtype::float32), .written = true, .tiles = &tiles}};
    executor on({.threads = 2});
    parallel::tiled_operands stored(operands, 0, on);
    {
      const parallel::shared_work shared;
      stored.store(0, {{0}, {20}}, operands[0].values);
    }
    if (sink.in_child()) std::_Exit(1);
    EXPECT_EQ(end_of(sink.child()), -SIGABRT);
    EXPECT_EQ(sink.stored(), 2);
  });
}

// The threads that read ahead are not in the child, which would wait for the windows that they
// read.
TEST(SharedWork, AChildOfAStreamingKernelEnds) {
  expect_to_end([] {
    const test::scratch_directory directory;
    constexpr index_t count = 4 << 20;
    const tensor values(create_file(directory / "values", count * sizeof(float)), dtype::float32,
                        layout({count}));
    executor one({.threads = 1, .memory_bytes = 1 << 20});
    const executor::scope within(one);
    bool has_forked = false;
    int ended = 0;
    for_each_segment<const float>(
        [&](std::span<const float>) {
          if (std::exchange(has_forked, true)) return;
          const pid_t child = forked();
          if (child == 0) return;
          EXPECT_EQ(end_of(child), -SIGABRT);
          ++ended;
        },
        values);
    EXPECT_EQ(ended, 1);
    EXPECT_GT(one.statistics().windows, 1U);
  });
}

TEST(SharedWork, AChildGoesOnWithACallThatHasNoOtherThreads) {
  expect_to_end([] {
    executor one({.threads = 1});
    pid_t child = -1;
    int tiles = 0;
    parallel::parallel_for_tiles(one, 5, [&](index_t tile, int) {
      ++tiles;
      if (tile == 2) child = forked();
    });
    if (child == 0) std::_Exit(tiles == 5 ? 0 : 1);
    EXPECT_EQ(end_of(child), 0);
    EXPECT_EQ(tiles, 5);
  });
}

// A child may call the engine inside the function that forked.
TEST(SharedWork, AChildMayComputeAndEndInsideIt) {
  expect_to_end([] {
    executor on({.threads = 2});
    std::atomic<int> inside = 0, ended = 0;
    parallel::parallel_for_tiles(on, 2, [&](index_t tile, int) {
      ++inside;
      await(inside, 2);
      if (tile == 0) return await(ended, 1);
      const pid_t child = forked();
      if (child == 0) {
        std::atomic<int> sum = 0;
        parallel::parallel_for_tiles(on, 10,
                                     [&](index_t number, int) { sum += static_cast<int>(number); });
        std::_Exit(sum == 45 ? 7 : 1);
      }
      EXPECT_EQ(end_of(child), 7);
      ++ended;
    });
    EXPECT_EQ(ended, 1);
  });
}

// A call that the child makes there has no other threads, so a child of the child goes on with it.
TEST(SharedWork, AGrandchildGoesOnWithACallOfTheChild) {
  expect_to_end([] {
    executor on({.threads = 2}), one({.threads = 1});
    std::atomic<int> inside = 0, ended = 0;
    parallel::parallel_for_tiles(on, 2, [&](index_t tile, int) {
      ++inside;
      await(inside, 2);
      if (tile == 0) return await(ended, 1);
      const pid_t child = forked();
      if (child == 0) {
        pid_t grandchild = -1;
        int tiles = 0;
        parallel::parallel_for_tiles(one, 5, [&](index_t number, int) {
          ++tiles;
          if (number == 2) grandchild = forked();
        });
        if (grandchild == 0) std::_Exit(tiles == 5 ? 7 : 1);
        std::_Exit(end_of(grandchild) == 7 && tiles == 5 ? 5 : 1);
      }
      EXPECT_EQ(end_of(child), 5);
      ++ended;
    });
    EXPECT_EQ(ended, 1);
  });
}

TEST(SharedWork, IsWhatTheThreadIsInsideOf) {
  EXPECT_FALSE(parallel::shared_work::inside());
  {
    const parallel::shared_work outer;
    {
      const parallel::shared_work inner;
      EXPECT_TRUE(parallel::shared_work::inside());
    }
    EXPECT_TRUE(parallel::shared_work::inside());
    std::thread([] { EXPECT_FALSE(parallel::shared_work::inside()); }).join();
  }
  EXPECT_FALSE(parallel::shared_work::inside());
}

}  // namespace
}  // namespace shale
