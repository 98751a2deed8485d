#include "terminal/interrupt.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

constexpr int unchanged = 8;
constexpr int changed = 7;

// Sends two signals to this process, and gives their receiver time to end it.
void interrupt_twice() {
  for (int i = 0; i < 2; ++i) {
    ::kill(::getpid(), SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

class Interrupts : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// The exit code of a command whose target is replaced while `during` runs, and `after` runs then.
template <class During, class After>
[[noreturn]] void replace_and_exit(During during, After after) {
  executor on({.threads = 1});
  const interrupt_watch watch(on);
  replace_target(during);
  after();
  std::_Exit(changed);
}

TEST_F(Interrupts, EndACommandAtTheSecondSignal) {
  EXPECT_EXIT(
      {
        executor on({.threads = 1});
        const interrupt_watch watch(on);
        interrupt_twice();
        std::_Exit(changed);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST_F(Interrupts, DoNotEndACommandThatReplacesItsTarget) {
  EXPECT_EXIT(replace_and_exit(interrupt_twice, [] {}), testing::ExitedWithCode(changed), "");
}

TEST_F(Interrupts, DoNotEndACommandThatHasReplacedItsTarget) {
  EXPECT_EXIT(replace_and_exit([] {}, interrupt_twice), testing::ExitedWithCode(changed), "");
}

TEST_F(Interrupts, DoNotEndTheProcessOfACommandThatHasReplacedItsTarget) {
  EXPECT_EXIT(
      {
        executor on({.threads = 1});
        {
          const interrupt_watch watch(on);
          replace_target([] {});
        }
        interrupt_twice();
        std::_Exit(changed);
      },
      testing::ExitedWithCode(changed), "");
}

TEST_F(Interrupts, EndTheProcessOfACommandThatHasReplacedNothing) {
  EXPECT_EXIT(
      {
        executor on({.threads = 1});
        { const interrupt_watch watch(on); }
        interrupt_twice();
      },
      testing::KilledBySignal(SIGINT), "");
}

// The signal that is noted after a reader has gone, if `before` ran before.
template <class Before>
int noted_after(Before before) {
  std::signal(SIGPIPE, SIG_DFL);
  heed_broken_pipes();
  executor on({.threads = 1});
  const interrupt_watch watch(on);
  before();
  reader_has_gone();
  return caught_signal();
}

TEST_F(Interrupts, ByAReaderThatHasGoneSpareACommandThatHasReplacedItsTarget) {
  EXPECT_EXIT(std::_Exit(noted_after([] {})), testing::ExitedWithCode(SIGPIPE), "");
  EXPECT_EXIT(std::_Exit(noted_after([] { replace_target([] {}); })), testing::ExitedWithCode(0),
              "");
}

TEST_F(Interrupts, KeepTheTargetIfTheyCameBefore) {
  EXPECT_EXIT(
      {
        executor on({.threads = 1});
        const interrupt_watch watch(on);
        ::kill(::getpid(), SIGINT);
        while (caught_signal() == 0) std::this_thread::yield();
        bool replaced = false;
        try {
          replace_target([&] { replaced = true; });
        } catch (const error& refused) {
          std::_Exit(!replaced && refused.code() == errc::cancelled ? unchanged : changed);
        }
        std::_Exit(changed);
      },
      testing::ExitedWithCode(unchanged), "");
}

}  // namespace
}  // namespace shale::tools
