// Tests write-back errors that the system reports once, before the commit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/helper_process.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

class WriteBack : public testing::Test {
 protected:
  void expect_so(std::vector<std::string> arguments) {
    arguments.push_back(directory.path());
    test::child_process helper(SHALE_WRITE_BACK_PEER, arguments);
    const std::string reason = helper.read_line();
    const int status = helper.wait();
    if (status == test::status_unavailable) GTEST_SKIP() << reason;
    EXPECT_EQ(status, 0);
  }

  test::scratch_directory directory;
};

// record.1, commit.6
TEST_F(WriteBack, ErrorsOfADeviceThatWereSeenOnceFailTheCommit) { expect_so({"thin"}); }

// commit.3: the pages of the failed commit are written again by the next one, and reach the disk.
TEST_F(WriteBack, ErrorsOfACommitDoNotHarmTheNextOne) { expect_so({"unbacked"}); }

TEST_F(WriteBack, ErrorsOfLargeChunksDoNotHarmSmallOnes) { expect_so({"unbacked-chunks"}); }

TEST_F(WriteBack, ErrorsOfAMappingDoNotHarmTheNextOne) { expect_so({"mapped-again"}); }

#if defined(SHALE_FAULTY_FILE_SYSTEM)

TEST_F(WriteBack, ErrorsOfAFileSystemThatWereSeenOnceFailTheCommit) {
  expect_so({"forgetful", SHALE_FAULTY_FILE_SYSTEM, "sync"});
  expect_so({"forgetful", SHALE_FAULTY_FILE_SYSTEM, "write"});
}

#endif

}  // namespace
}  // namespace shale
