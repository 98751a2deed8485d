// Tests that no thread is inside a critical section while the process forks.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "storage/system/fork_handlers.hpp"
#include "storage/system/fork_safe_mutex.hpp"
#include "storage/system/long_turn.hpp"
#include "support/allocation_turns.hpp"
#include "support/bounded.hpp"
#include "support/fork_elsewhere.hpp"

namespace shale::detail {
namespace {

// The status of a child that runs `body`; 0 if it returns true.
int status_of_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const test::hang_alarm limit;  // the child may wait for a thread that it does not have
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// Two numbers that are equal whenever nobody holds the mutex.
struct pair_of_numbers {
  fork_safe_mutex mutex;
  volatile int one = 0;
  volatile int other = 0;

  bool change() {
    const std::lock_guard lock(mutex);
    one = one + 1;
    const bool alone = one == other + 1;
    other = other + 1;
    return alone;
  }
};

// section.1, section.2
TEST(ForkSafeMutex, IsFreeInChildrenAndWhatItGuardsWhole) {
  std::array<pair_of_numbers, 2> pairs;
  std::atomic<bool> enough = false;
  std::vector<std::jthread> threads;
  for (int k = 0; k < 3; ++k)
    threads.push_back(test::running_thread([&] {
      while (!enough) {
        EXPECT_TRUE(pairs[0].change());
        // Another one inside the first, which a thread that waits to fork must not prevent.
        const std::lock_guard outer(pairs[0].mutex);
        EXPECT_TRUE(pairs[1].change());
      }
    }));
  for (int fork = 0; fork < 300 && !testing::Test::HasFailure(); ++fork)
    EXPECT_EQ(status_of_child([&] { return pairs[0].change() && pairs[1].change(); }), 0);
  enough = true;
}

TEST(ForkSafeMutex, MayBeHeldByTheThreadThatForks) {
  fork_safe_mutex mutex;
  fork_safe_mutex other;
  std::unique_lock lock(mutex);
  EXPECT_EQ(status_of_child([&] {
              lock.unlock();
              const std::scoped_lock both(mutex, other);
              return status_of_child([&] { return other.try_lock() == false; }) == 0;
            }),
            0);
  EXPECT_FALSE(mutex.try_lock());
  lock.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(LongTurn, BelongsToOneThreadAtATime) {
  const test::hang_alarm limit;
  long_turn turn;
  long count = 0;
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < 4; ++k)
      threads.push_back(test::running_thread([&] {
        for (int i = 0; i < 20'000; ++i) {
          const std::lock_guard lock(turn);
          ++count;
        }
      }));
  }
  EXPECT_EQ(count, 4 * 20'000);
}

TEST(LongTurn, DelaysNoForkAndIsFreeInTheChild) {
  const test::hang_alarm limit;
  long_turn turn;
  const std::lock_guard lock(turn);
  EXPECT_TRUE(test::forks_elsewhere());
  int status = -1;
  std::thread([&] {
    status = status_of_child([&] {
      turn.lock();  // of a thread that the child does not have
      turn.unlock();
      turn.lock();
      const bool grandchild_has_it = status_of_child([&] { return turn.lock(), true; }) == 0;
      turn.unlock();
      return grandchild_has_it;
    });
  }).join();
  EXPECT_EQ(status, 0);
}

// The handlers that were called, as letters.
constinit std::array<char, 64> called{};
constinit std::size_t calls = 0;
template <char Letter>
void note() {
  called[calls++] = Letter;
}

// forks.1, forks.2: replaces the library's own handlers, so it runs in a child.
TEST(ForkHandlers, RunInOrder) {
  EXPECT_EQ(status_of_child([] {
              static constexpr fork_handlers late{note<'x'>, note<'x'>, note<'x'>};
              static constexpr fork_handlers first{note<'a'>, note<'A'>, note<'1'>};
              static constexpr fork_handlers second{[] {
                                                      note<'b'>();
                                                      on_fork(forking_part::critical_sections,
                                                              late);
                                                    },
                                                    note<'B'>, note<'2'>};
              static constexpr fork_handlers last{note<'c'>, nullptr, note<'3'>};
              static constexpr fork_handlers none{};
              on_fork(forking_part::critical_sections, none);
              on_fork(forking_part::descriptors, first);
              on_fork(forking_part::unfinished_files, second);
              on_fork(forking_part::memory_pools, none);
              on_fork(forking_part::guarded_ranges, last);
              const bool in_child =
                  status_of_child([] { return std::string(called.data()) == "abc321"; }) == 0;
              return in_child && std::string(called.data()) == "abcBA";
            }),
            0);
}

TEST(ForkHandlers, CountGenerations) {
  const unsigned here = fork_generation();
  EXPECT_EQ(status_of_child([&] {
              return fork_generation() == here + 1 &&
                     status_of_child([&] { return fork_generation() == here + 2; }) == 0;
            }),
            0);
  EXPECT_EQ(fork_generation(), here);
}

TEST(OwningProcess, IsNoChildHoweverItWasMade) {
  const owning_process own;
  EXPECT_TRUE(own.is_this_one());
  EXPECT_EQ(status_of_child([&] { return !own.is_this_one() && owning_process().is_this_one(); }),
            0);
  // No handler of fork runs.
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) ::_exit(!own.is_this_one() && owning_process().is_this_one() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(own.is_this_one());
}

}  // namespace
}  // namespace shale::detail
