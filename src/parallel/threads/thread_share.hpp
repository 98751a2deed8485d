// Decides how many threads the engine may ask oneTBB for. oneTBB ends the process if the system
// refuses to start a thread (by a limit of processes, of a container, or of memory). So the engine
// first tries with threads of its own: it starts as many as it wants at once and ends them again.
//
// Invariants
//   share.1  oneTBB is allowed N threads (the sum over live shares) only after N threads were once
//            started at the same time; otherwise oneTBB's limit is lowered
#pragma once

namespace shale::parallel {

/// The share of one team of helpers, for its lifetime.
/// Threads  shares may be made and destroyed in any thread
class thread_share {
 public:
  /// Cost     The first share of the process starts and ends threads, 10 to 20 µs each: 17 or more,
  ///          but no more than are needed if addresses are limited. A later share does this again
  ///          if all live shares together need more threads than were ever started at once, and
  ///          the system has not refused one yet. Otherwise O(1)
  /// Throws   exceptions of oneTBB if a limit cannot be set; do not ask it for threads then
  explicit thread_share(int wanted);
  ~thread_share();
  thread_share(const thread_share&) = delete;
  thread_share& operator=(const thread_share&) = delete;

  /// The wanted number, or fewer if the system does not allow as many. If the host program or
  /// another call starts threads before oneTBB starts its own, the number may be too high.
  int threads() const noexcept { return threads_; }

 private:
  const int wanted_;
  int threads_;
};

}  // namespace shale::parallel
