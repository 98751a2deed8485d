// The two locks of a transaction, and the process that they belong to. One class has both, because
// their order is one rule: a thread that needs both locks `changes` first.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <mutex>
#include <string>

namespace shale::arrays {

/// A forked child never waits for these locks: another thread of the parent may have held them at
/// the fork, and that thread does not exist in the child.
/// Threads  every member may be called from any thread
class transaction_locks {
 public:
  /// `path` is the container's path, for messages.
  explicit transaction_locks(std::string path) : path_(std::move(path)) {}

  /// Whether this process began the transaction.
  bool are_of_this_process() const noexcept { return ::getpid() == process_; }

  /// Serialises calls that add, remove or rename arrays, and the end of the transaction. No thread
  /// waits for writes while it holds this lock.
  /// Throws   invalid_argument in a forked child
  std::unique_lock<std::mutex> lock_changes() const { return lock(changes_); }

  /// Guards the format's transaction, the written arrays and the members of these, and the base
  /// generation.
  /// Throws   invalid_argument in a forked child
  std::unique_lock<std::mutex> lock_state() const { return lock(state_); }

  /// The same locks for calls that cannot throw. The caller has asked `are_of_this_process`.
  std::unique_lock<std::mutex> lock_own_changes() const noexcept {
    return std::unique_lock(changes_);
  }
  std::unique_lock<std::mutex> lock_own_state() const noexcept { return std::unique_lock(state_); }

 private:
  std::unique_lock<std::mutex> lock(std::mutex& mutex) const;

  const std::string path_;
  const pid_t process_ = ::getpid();
  mutable std::mutex changes_;
  mutable std::mutex state_;
};

}  // namespace shale::arrays
