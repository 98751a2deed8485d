// Waits for the writer lock (commit.1).
#pragma once

#include <chrono>
#include <memory>

#include "format/os/bound_path.hpp"
#include "format/os/file_system.hpp"

namespace shale::format {

/// Longest pause between attempts to take a lock that is held.
inline constexpr std::chrono::milliseconds lock_step_max{16};

/// Takes writer locks of the file that has a name. All calls of `take` together wait no longer than
/// the time-out.
///
/// The kernel does not queue attempts to take a lock, so a process that begins again right after
/// each commit could starve all others. A second lock, the queue byte, prevents that: one waiting
/// writer holds it, and the others do not try the writer lock while it is held. So the writer lock
/// goes to the holder of the queue byte next, and all others compete for the queue byte.
class writer_lock_wait {
 public:
  writer_lock_wait(const bound_path& place, std::chrono::milliseconds timeout) noexcept
      : place_(&place), timeout_(timeout) {}

  /// Descriptions of the file, each with the lock that it holds.
  struct turn {
    std::unique_ptr<open_file> lock;      ///< the writer lock
    std::unique_ptr<open_file> in_queue;  ///< the queue byte; null if there was no need to wait
  };

  /// Opens the file that has the name now, and takes its writer lock. The caller calls it again if
  /// the name leads to another file by then; the time of earlier calls counts.
  /// Throws   busy (not within the time-out; os/locks.hpp makes the message), not_found,
  ///          access_denied, io
  turn take();

 private:
  bool is_first(open_file& lock, const turn& mine) const;
  void join_queue(turn& mine);

  const bound_path* place_;
  std::chrono::milliseconds timeout_;
  std::chrono::microseconds waited_{0};
  std::chrono::milliseconds step_{1};
  bool may_queue_ = true;
};

}  // namespace shale::format
