// Tests that reading goes on ahead of the work. A reader that stops too early would be waited for
// for ever, so these tests run in processes of their own.
#include <gtest/gtest.h>

#include <atomic>

#include "parallel/threads/reader_team.hpp"
#include "support/bounded.hpp"

namespace shale::parallel {
namespace {

void await_reads(const std::atomic<index_t>& read, index_t wanted) {
  for (index_t seen; (seen = read) < wanted;) read.wait(seen);
}

// readers.3
TEST(ReadingAhead, GoesOnIfWorkComesToWhatHasBeenRead) {
  test::expect_to_end([] {
    constexpr index_t count = 20, ahead = 2;
    std::atomic<index_t> read = 0;
    reader_team readers(count, ahead, [&](index_t) {
      ++read;
      read.notify_all();
    });
    for (index_t number = 0; number + 1 + ahead <= count; ++number) {
      await_reads(read, number + ahead);
      readers.wait_for(number);  // has been read, so that it returns at once
      await_reads(read, number + 1 + ahead);
    }
    EXPECT_EQ(read, count);
  });
}

}  // namespace
}  // namespace shale::parallel
