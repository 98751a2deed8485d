// The helper process that is killed before its n-th call to the operating system:
//
//   dying_peer PATH STEP N runs a step of the history in array_history.hpp; prints "done" if it is
//   not killed. With a fourth word it commits without waiting, and another generation after it
#include <cstdio>
#include <cstdlib>

#include "array/array_history.hpp"
#include "support/failing_calls.hpp"

int main(int count, char** words) {
  using namespace shale;
  if (count != 4 && count != 5) return 2;
  const int step = std::atoi(words[2]);
  test::fail_calls(test::failing::by_death, static_cast<std::uint64_t>(std::atoll(words[3])));
  if (step == 0) {
    container::create(words[1]);
  } else {
    container file = container::open(words[1], open_mode::write);
    transaction change = file.begin();
    test::tell_step(step, change);
    if (count == 4) {
      change.commit();
    } else {
      change.commit_async();
      transaction later = file.begin();
      later.set_level_attribute("", "note", "later");
      later.commit_async().wait();
    }
  }
  test::stop_failing();
  std::puts("done");
}
