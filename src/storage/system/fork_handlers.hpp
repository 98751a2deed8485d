// Calls the fork handlers of the library's parts in one fixed order. If each part registered its
// handlers with the system, the order would depend on which part was used first.
//
// Invariants
//   forks.1  before a fork, the parts prepare from the first of `forking_part` to the last; after
//            it, in both processes, they go on from the last to the first
//   forks.2  a part whose `prepare` was not called gets no other call for this fork
#pragma once

#include <sys/types.h>
#include <unistd.h>

namespace shale::detail {

/// The parts of the library that have handlers. The `prepare` of a part may wait for a thread that
/// waits for a lock of a later part, never for one that waits for a lock of an earlier part.
enum class forking_part : unsigned {
  critical_sections,  ///< see fork_safe_mutex
  descriptors,        ///< see format/os/descriptors_kept_from_children.hpp
  unfinished_files,
  memory_pools,
  housekeeper,  ///< the thread that ages idle memory of pools
  guarded_ranges,
};

/// A null pointer means that nothing is to be done.
struct fork_handlers {
  void (*prepare)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};

/// Sets the handlers of a part, which must be static. They are called from the next fork on.
/// Returns  0, or the number of the system's error: then they are never called
int on_fork(forking_part part, const fork_handlers& handlers) noexcept;

/// The number of forks between this process and its first ancestor that used this library. An
/// object that was made under another number belongs to the parent. A child that was made without
/// the handlers of fork (vfork, clone) has its parent's number: see owning_process.
unsigned fork_generation() noexcept;

/// Remembers the process that made an object whose destruction others can see. Also tells apart a
/// child that was made without the handlers of fork. Cost: a system call for each question.
class owning_process {
 public:
  /// Whether the calling process is the one that made this object.
  bool is_this_one() const noexcept;

 private:
  unsigned generation_ = fork_generation();  // a later child may get the number of a dead process
  pid_t process_ = ::getpid();
};

}  // namespace shale::detail
