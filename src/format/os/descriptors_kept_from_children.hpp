// Closes a forked child's copies of descriptors whose descriptions hold a writer's locks. Such a
// lock would outlive its owner for as long as the child runs.
//
// Invariants
//   child.1  when fork returns in a child, the child has no copy of a registered descriptor
//   child.2  a descriptor that was opened while the process forked is not registered, but opened
//            anew; so opening, which may wait, needs no lock that fork waits for
#pragma once

#include <cstdint>

namespace shale::format {

/// How many forks of this process have begun. Below zero, the handlers of fork could not be
/// installed, and this is -errno.
std::int64_t forks_begun() noexcept;

/// Keeps one descriptor from children that are forked while it lives: there, the copy is closed and
/// the variable is -1.
/// Threads  safe; the variable is changed in children alone, before fork returns
class kept_from_children {
 public:
  explicit kept_from_children(int& descriptor) noexcept : descriptor_(&descriptor) {}
  ~kept_from_children();

  kept_from_children(const kept_from_children&) = delete;
  kept_from_children& operator=(const kept_from_children&) = delete;

  /// Begins to keep the descriptor. Returns false, and changes nothing, if a fork has begun since
  /// `forks_begun` answered `before`: its child may have a copy, so the descriptor must be opened
  /// anew.
  bool start(std::int64_t before) noexcept;

 private:
  friend struct child_handlers;

  int* descriptor_;
  bool listed_ = false;
  kept_from_children* next_ = nullptr;
  kept_from_children* previous_ = nullptr;
};

}  // namespace shale::format
