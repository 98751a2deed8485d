#include "parallel/threads/thread_number.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include "parallel/executor/counters.hpp"

namespace shale::parallel {
namespace {

// Runs `body` on `count` threads that all live until the last one has returned from it.
template <class Body>
void run_together(int count, Body body) {
  std::barrier all(count);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < count; ++thread)
    threads.emplace_back([&, thread] {
      body(thread);
      all.arrive_and_wait();
    });
  for (std::thread& each : threads) each.join();
}

TEST(ThreadNumber, IsNobodyElsesWhileTheThreadLives) {
  const int own = thread_number::of_this_thread();
  EXPECT_EQ(thread_number::of_this_thread(), own) << "it changed";
  for (int round = 0; round < 20; ++round) {
    std::vector<int> numbers(20);
    run_together(20, [&](int thread) {
      numbers[static_cast<std::size_t>(thread)] = thread_number::of_this_thread();
    });
    std::set<int> different(numbers.begin(), numbers.end());
    different.insert(own);
    EXPECT_EQ(different.size(), 21u);
    EXPECT_LT(*different.rbegin(), thread_number::count);
  }
}

TEST(ThreadNumber, IsTheLastOneForThreadsThatAreTooMany) {
  static_cast<void>(thread_number::of_this_thread());
  std::vector<int> numbers(50);
  run_together(50, [&](int thread) {
    numbers[static_cast<std::size_t>(thread)] = thread_number::of_this_thread();
  });
  const std::multiset<int> all(numbers.begin(), numbers.end());
  EXPECT_GE(all.count(thread_number::count), 20u);
  for (int number = 0; number < thread_number::count; ++number)
    EXPECT_LE(all.count(number), 1u) << number;
}

TEST(Counters, AddUpWhatAllThreadsCount) {
  counters counted;
  for (int round = 0; round < 3; ++round)
    run_together(40, [&](int thread) {
      for (int k = 0; k < 1000; ++k) {
        counted.pass();
        counted.read(static_cast<std::uint64_t>(thread));
      }
    });
  EXPECT_EQ(counted.statistics().passes, 120'000u);
  EXPECT_EQ(counted.statistics().bytes_read, 3u * 1000u * 780u);
}

}  // namespace
}  // namespace shale::parallel
