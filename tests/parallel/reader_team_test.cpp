// Tests that numbers are read ahead of the threads that wait for them.
#include "parallel/threads/reader_team.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace shale::parallel {
namespace {

// readers.1
TEST(ReaderTeam, ReadsEachNumberOnce) {
  constexpr index_t count = 1000;
  for (const index_t ahead : {0, 1, 3, 50, 2000}) {
    SCOPED_TRACE(ahead);
    std::vector<std::atomic<int>> times(count);
    reader_team readers(count, ahead, [&](index_t number) { ++times[number]; });
    std::atomic<index_t> next = 0;
    std::atomic<int> unread = 0;
    std::vector<std::thread> workers;
    workers.reserve(3);
    for (int k = 0; k < 3; ++k)
      workers.emplace_back([&] {
        for (index_t number; (number = next++) < count;) {
          readers.wait_for(number);
          if (times[number] != 1) ++unread;
        }
      });
    for (auto& each : workers) each.join();
    EXPECT_EQ(unread, 0);
    for (const auto& each : times) EXPECT_EQ(each, 1);
  }
}

// readers.2
TEST(ReaderTeam, ReadsNoFurtherThanAllowed) {
  constexpr index_t count = 300, ahead = 7;
  std::atomic<index_t> waited_for = -1;
  std::atomic<bool> too_far = false;
  reader_team readers(count, ahead, [&](index_t number) {
    if (number > waited_for + ahead) too_far = true;
  });
  for (index_t number = 0; number < count; ++number) {
    waited_for = number;
    readers.wait_for(number);
  }
  EXPECT_FALSE(too_far);
}

TEST(ReaderTeam, ReadsWithoutBeingWaitedFor) {
  std::atomic<index_t> read = 0;
  reader_team readers(100, 5, [&](index_t) {
    ++read;
    read.notify_all();
  });
  for (index_t seen; (seen = read) < 5;) read.wait(seen);
}

TEST(ReaderTeam, FailuresReachWhoWaits) {
  for (const index_t ahead : {0, 4}) {
    SCOPED_TRACE(ahead);
    reader_team readers(10, ahead, [](index_t number) {
      if (number == 6) throw std::runtime_error("six");
    });
    for (index_t number = 0; number < 6; ++number) EXPECT_NO_THROW(readers.wait_for(number));
    for (int k = 0; k < 2; ++k) EXPECT_THROW(readers.wait_for(6), std::runtime_error);
    EXPECT_NO_THROW(readers.wait_for(7));
  }
}

TEST(ReaderTeam, GoesWithoutReadingTheRest) {
  std::mutex mutex;
  std::set<index_t> read;
  {
    reader_team readers(1'000'000, 2, [&](index_t number) {
      const std::lock_guard lock(mutex);
      read.insert(number);
    });
    readers.wait_for(0);
  }
  EXPECT_LE(read.size(), 3u);
}

}  // namespace
}  // namespace shale::parallel
