// Children that do not exec: what they have of their parent's storages, and what they cannot harm.
#include <gtest/gtest.h>

#include "storage/test_support.hpp"

namespace shale {
namespace {

class Fork : public testing::Test {
 protected:
  void expect_so(const std::string& verb) {
    test::expect_found(SHALE_FORK_PEER, {verb, directory.path()});
  }

  test::scratch_directory directory;
};

TEST_F(Fork, ChildrenHavePrivateCopiesOfTheirOwn) { expect_so("private-copies"); }

TEST_F(Fork, FaultsInChildrenLeaveTheParentUntouched) { expect_so("fault-in-child"); }

TEST_F(Fork, ChildrenHaveNoShareInWritableMappings) { expect_so("shared-stores"); }

#if !defined(__SANITIZE_THREAD__)  // which lets no thread begin in the child of a process with some
TEST_F(Fork, ChildrenHaveAHousekeeperOfTheirOwn) { expect_so("idle-in-child"); }
#endif

// guard.1, guard.2
TEST_F(Fork, MayComeWhileOtherThreadsFault) { expect_so("while-faulting"); }

}  // namespace
}  // namespace shale
