// Bounds the time of tests that would wait for ever if the tested code were broken.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "support/instrumented.hpp"

namespace shale::test {

/// Ends the process by an alarm unless this object is destroyed before. The time is longer than any
/// correct code takes. Only one may exist at a time.
class hang_alarm {
 public:
  hang_alarm() noexcept { ::alarm(instrumented ? 240 : 30); }
  ~hang_alarm() { ::alarm(0); }
  hang_alarm(const hang_alarm&) = delete;
  hang_alarm& operator=(const hang_alarm&) = delete;
};

/// Runs `body` in a new process, which must end by itself and without a failed expectation.
template <class Body>
void expect_to_end(Body body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const hang_alarm limit;
        body();
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace shale::test
