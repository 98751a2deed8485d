#include "storage/system/thread_end.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace shale {
namespace {

using detail::thread_owned;

std::vector<int> destroyed;

struct numbered final : thread_owned {
  explicit numbered(int given) : number(given) {}
  ~numbered() override { destroyed.push_back(number); }

  const int number;
};

struct leaving_another final : thread_owned {
  ~leaving_another() override {
    destroyed.push_back(10);
    (new numbered(11))->leave_to_thread();
  }
};

void leave(thread_owned* object) { EXPECT_TRUE(object->leave_to_thread()); }

// thread.1
TEST(ThreadEnd, ComesAfterThreadLocalObjects) {
  struct local {
    ~local() { destroyed.push_back(0); }
    bool made = true;
  };
  destroyed.clear();
  std::thread([] {
    static thread_local local earlier;
    EXPECT_TRUE(earlier.made);
    leave(new numbered(1));
    leave(new numbered(2));
    static thread_local local later;
    EXPECT_TRUE(later.made);
  }).join();
  EXPECT_EQ(destroyed, (std::vector<int>{0, 0, 2, 1}));
}

TEST(ThreadEnd, DestroysObjectsThatAreLeftDuringIt) {
  destroyed.clear();
  std::thread([] { leave(new leaving_another); }).join();
  EXPECT_EQ(destroyed, (std::vector<int>{10, 11}));
}

TEST(ThreadEnd, IsEachThreadsOwn) {
  destroyed.clear();
  std::atomic<bool> enough = false;
  std::thread other([&] {
    leave(new numbered(1));
    enough.wait(false);
  });
  std::thread([] { leave(new numbered(2)); }).join();
  EXPECT_EQ(destroyed, (std::vector<int>{2}));
  enough = true;
  enough.notify_all();
  other.join();
  EXPECT_EQ(destroyed, (std::vector<int>{2, 1}));
}

}  // namespace
}  // namespace shale
