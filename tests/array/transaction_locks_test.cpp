// Tests the locks of a transaction in a forked child.
#include "array/transaction/state/transaction_locks.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/bounded.hpp"
#include "support/child_threads.hpp"
#include "support/failures.hpp"

namespace shale::arrays {
namespace {

using test::code_of;

// The parent holds both locks, and nobody can release them in the child.
TEST(TransactionLocks, AreRefusedInAForkedChild) {
  const transaction_locks locks("survey.shale");
  EXPECT_TRUE(locks.are_of_this_process());
  const auto changes = locks.lock_changes();
  const auto state = locks.lock_state();
  const pid_t child = ::fork();
  if (child == 0) {
    test::start_no_housekeeper();
    const test::hang_alarm limit;
    const bool refused =
        !locks.are_of_this_process() &&
        code_of([&] { static_cast<void>(locks.lock_changes()); }) == errc::invalid_argument &&
        code_of([&] { static_cast<void>(locks.lock_state()); }) == errc::invalid_argument;
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace shale::arrays
