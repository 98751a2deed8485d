// Tests calls over a file that another process truncates, grows and rewrites at random instants
// while kernels run. The process survives, and every call is either right or reports the lost
// bytes.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "support/child_process.hpp"
#include "support/instrumented.hpp"
#include "support/long_run.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

class DisturbedFile : public testing::Test {
 protected:
  // There are a thousand disturbances, fewer under sanitizers, and ten times as many with
  // SHALE_LONG.
  static int rounds() {
#if defined(__SANITIZE_THREAD__)
    const int usual = 100;
#else
    const int usual = test::repeats(1000);
#endif
    return test::run_long() ? 10 * usual : usual;
  }

  void expect_survival(const std::string& verb) {
    test::child_process engine(SHALE_DISTURBED_FILE_PEER,
                               {verb, std::to_string(rounds()), directory.path()});
    const std::string line = engine.read_line();
    EXPECT_EQ(engine.wait(), 0);
    int threw = 0, shortened = 0, untouched = 0, streamed = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "%d %d %d %d", &threw, &shortened, &untouched, &streamed),
              4);
    EXPECT_EQ(shortened + untouched, rounds());
    EXPECT_GT(untouched, 0);
    EXPECT_GT(threw, 0);
    EXPECT_EQ(streamed, 1);
  }

  test::scratch_directory directory;
};

// storage.3
TEST_F(DisturbedFile, IsSurvivedByKernelsThatLoad) { expect_survival("loads"); }

// storage.3
TEST_F(DisturbedFile, IsSurvivedByKernelsThatStore) { expect_survival("stores"); }

}  // namespace
}  // namespace shale
