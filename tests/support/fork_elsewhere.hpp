// Forks in another thread than the one that is tested.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace shale::test {

/// Forks in a thread of its own, and waits for that thread and for the child, which ends at once.
/// It never returns if `fork` waits for the calling thread.
/// Returns  whether the child was made and has ended by itself
inline bool forks_elsewhere() {
  bool went_well = false;
  std::thread([&went_well] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    int status = -1;
    went_well = child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  }).join();
  return went_well;
}

}  // namespace shale::test
