// A mutex that a forked child never finds locked. The child never finds the guarded data half
// changed either: `fork` waits until no thread is between `lock` and `unlock` of any mutex of this
// type.
//
// So a thread that holds such a mutex must not wait for another thread, unless that one holds such
// a mutex too. It may wait for the system (a read, one attempt to lock a file); `fork` then waits
// for as long. Work that may take long uses a `long_turn`.
//
// Invariants
//   section.1  when the system copies the process, no other thread holds a fork_safe_mutex. If the
//              forking thread holds one itself, other threads may hold some too; then the child may
//              only call _exit or exec
//   section.2  while a thread waits to fork, no thread takes its first fork_safe_mutex; a thread
//              that holds one takes further ones without waiting for the fork
#pragma once

#include <mutex>

namespace shale::detail {

/// Between its construction and its destruction in one thread, no other thread forks.
/// Cost     two atomic additions, if the thread is in no other section
class critical_section {
 public:
  critical_section() noexcept { enter(); }
  ~critical_section() { leave(); }
  critical_section(const critical_section&) = delete;
  critical_section& operator=(const critical_section&) = delete;

 private:
  friend class fork_safe_mutex;
  static void enter() noexcept;
  static void leave() noexcept;
};

/// Meets the standard's requirements of a Mutex. May be static: it has no destructor to run.
class fork_safe_mutex {
 public:
  constexpr fork_safe_mutex() noexcept = default;
  fork_safe_mutex(const fork_safe_mutex&) = delete;
  fork_safe_mutex& operator=(const fork_safe_mutex&) = delete;

  void lock() {
    critical_section::enter();
    mutex_.lock();
  }
  bool try_lock() {
    critical_section::enter();
    if (mutex_.try_lock()) return true;
    critical_section::leave();
    return false;
  }
  void unlock() {
    mutex_.unlock();
    critical_section::leave();
  }

 private:
  std::mutex mutex_;
};

}  // namespace shale::detail
