// Makes calls from the code that runs last: destructors of thread_local and static objects,
// handlers of atexit, and destructor functions of the program.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "support/bounded.hpp"

namespace shale::test {

enum class last_moment {
  end_of_thread,       ///< a thread_local object of a thread that ends
  end_of_main,         ///< a thread_local object of the thread that ends the process
  atexit_handler,      ///< a handler that was installed before the library was used
  static_object,       ///< an object that was made before the library was used
  destructor_function  ///< after all of these
};

inline constexpr last_moment last_moments[] = {
    last_moment::end_of_thread, last_moment::end_of_main, last_moment::atexit_handler,
    last_moment::static_object, last_moment::destructor_function};

using answering_call = bool (*)();
inline constinit answering_call last_call = nullptr;
inline constinit bool last_call_is_for_fini = false;

// These allocations take memory that the library has freed, and overwrite it.
inline void overwrite_freed_memory() {
  for (std::size_t bytes = 16; bytes <= 1024; bytes += 16)
    for (int k = 0; k < 10; ++k) {
      auto* const block = static_cast<volatile unsigned char*>(std::malloc(bytes));
      for (std::size_t i = 0; i < bytes; ++i) block[i] = 0xEE;
    }
}

inline void make_last_call() {
  overwrite_freed_memory();
  ::_exit(last_call() && last_call() ? 7 : 1);
}

struct calling_when_destroyed {
  ~calling_when_destroyed() { make_last_call(); }
  bool made = true;
};

inline thread_local std::vector<calling_when_destroyed> of_thread;

namespace {
[[gnu::destructor]] void call_at_fini() {
  if (last_call_is_for_fini) make_last_call();
}
}  // namespace

/// Runs in a process of its own: uses the library by `before`, ends the thread or the process, and
/// calls `last` twice at that moment. It must return true.
inline void expect_last_call(last_moment when, void (*before)(), answering_call last) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [&] {
    const hang_alarm limit;
    last_call = last;
    if (when == last_moment::end_of_thread)
      std::thread([&] {
        of_thread.resize(1);
        before();
      }).join();
    if (when == last_moment::end_of_main) of_thread.resize(1);
    if (when == last_moment::atexit_handler) std::atexit(make_last_call);
    if (when == last_moment::static_object) static calling_when_destroyed object;
    if (when == last_moment::destructor_function) last_call_is_for_fini = true;
    before();
    std::exit(2);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(7), "") << "moment " << static_cast<int>(when);
}

}  // namespace shale::test
