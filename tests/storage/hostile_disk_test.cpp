// Disks that are full, fail or disappear under storages. A helper mounts them privately, so that
// the machine's own mounts stay unchanged whatever happens.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "storage/test_support.hpp"

namespace shale {
namespace {

class HostileDisk : public testing::Test {
 protected:
  static void expect_so(const std::vector<std::string>& arguments) {
    test::expect_found(SHALE_HOSTILE_DISK_PEER, arguments);
  }

  test::scratch_directory directory;
};

// file.2, file.3: growing and storing, in a file system in memory
TEST_F(HostileDisk, FullInMemoryIsAnErrorAndHarmsNothingElse) {
  expect_so({"full-disk", "tmpfs", directory.path()});
}

// The same in a file system on a device.
TEST_F(HostileDisk, FullOnADeviceIsAnErrorAndHarmsNothingElse) {
  expect_so({"full-disk", "ext4", directory.path()});
}

TEST_F(HostileDisk, FullSharedMemoryIsAnErrorAndLeavesNothing) {
  expect_so({"full-shared-memory"});
}

#if defined(SHALE_FAULTY_FILE_SYSTEM)

TEST_F(HostileDisk, FailedReadsNameFileAndByte) {
  expect_so({"device-read", SHALE_FAULTY_FILE_SYSTEM, directory.path()});
}

TEST_F(HostileDisk, StoresIntoPagesThatCannotBeReadAreSwallowed) {
  expect_so({"device-read-for-store", SHALE_FAULTY_FILE_SYSTEM, directory.path()});
}

TEST_F(HostileDisk, FailedWritesAreReportedByFlush) {
  expect_so({"device-write", SHALE_FAULTY_FILE_SYSTEM, directory.path()});
}

// file.2, file.3
TEST_F(HostileDisk, FailedGrowthLeavesTheFileAsItWas) {
  expect_so({"device-growth", SHALE_FAULTY_FILE_SYSTEM, directory.path()});
}

TEST_F(HostileDisk, VanishedDeviceIsSurvived) {
  expect_so({"device-gone", SHALE_FAULTY_FILE_SYSTEM, directory.path()});
}

#endif

}  // namespace
}  // namespace shale
