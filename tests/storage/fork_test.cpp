// Forked children that do not exec: which storages of the parent they can use, and that they cannot
// harm the others.
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

// guard.5
TEST_F(Fork, ChildrenThatTouchWritableMappingsFindTheirBytesLost) { expect_so("touched-in-child"); }

// guard.5
TEST_F(Fork, ChildrenUnmapNothingForeign) { expect_so("foreign-in-child"); }

TEST_F(Fork, ChildrenThatAreMadeWithoutHandlersUnmapNothingForeign) {
  expect_so("foreign-without-handlers");
}

#if !defined(__SANITIZE_THREAD__)  // it allows no new thread in the child
TEST_F(Fork, ChildrenHaveAHousekeeperOfTheirOwn) { expect_so("idle-in-child"); }
#endif

// guard.1, guard.2
TEST_F(Fork, MayComeWhileOtherThreadsFault) { expect_so("while-faulting"); }

}  // namespace
}  // namespace shale
