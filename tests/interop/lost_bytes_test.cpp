// The system fails to write bytes of an unfinished file, and reports it once, before the file is
// published.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/helper_process.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

class LostBytes : public testing::Test {
 protected:
  void expect_so(std::vector<std::string> arguments) {
    arguments.push_back(directory.path());
    test::child_process helper(SHALE_LOST_BYTES_PEER, arguments);
    const std::string reason = helper.read_line();
    const int status = helper.wait();
    if (status == test::status_unavailable) GTEST_SKIP() << reason;
    EXPECT_EQ(status, 0);
  }

  test::scratch_directory directory;
};

// awaited.1, awaited.2
TEST_F(LostBytes, OfADeviceAreNotPublished) { expect_so({"thin"}); }

#if defined(SHALE_FAULTY_FILE_SYSTEM)

// awaited.2
TEST_F(LostBytes, OfAFileSystemAreNotPublished) {
  expect_so({"forgetful", SHALE_FAULTY_FILE_SYSTEM});
}

#endif

}  // namespace
}  // namespace shale
