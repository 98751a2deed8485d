// Provides an executor's helpers: an arena of oneTBB, and the team whose tasks run in it.
//
// An exception leaves an arena of oneTBB in a state in which later calls wait for ever. An arena
// whose initialisation threw is never initialised again. An arena that failed to start a thread
// keeps its internal lock for starting threads. So an arena that has thrown is neither used again
// nor destroyed; the next call makes a new one.
//
// Invariants
//   arena.1  no function of an arena is called after one of them has thrown
//   arena.2  a call that finds no arena continues without helpers; it does not wait for a thread
//            that is making one
//   arena.3  a forked child whose parent has made an arena uses none, so its calls have no helpers
#pragma once

#include <tbb/task_arena.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "parallel/threads/helper_team.hpp"
#include "parallel/threads/single_turn.hpp"
#include "parallel/threads/thread_share.hpp"

namespace shale::parallel {

class helper_arena {
 public:
  /// Throws   bad_alloc and other exceptions of oneTBB
  explicit helper_arena(int helpers);

  int helpers() const noexcept { return helpers_; }

  ~helper_arena();
  helper_arena(const helper_arena&) = delete;
  helper_arena& operator=(const helper_arena&) = delete;

  helper_team& team() noexcept { return *team_; }
  tbb::task_arena& arena() noexcept { return *arena_; }

 private:
  const int helpers_;
  std::unique_ptr<tbb::task_arena> arena_;
  helper_team::handle team_;
};

/// Arenas whose executors are gone. An arena takes memory and threads until its last task has run,
/// which may be long after its executor. So a program that makes executors one after the other
/// would accumulate arenas. Instead, each executor takes the arena of an earlier one.
/// Threads  any; nobody waits
class idle_arenas {
 public:
  /// Those of the process. They are never destroyed.
  static idle_arenas& of_process();

  /// An arena for `helpers` helpers, or null.
  std::unique_ptr<helper_arena> take(int helpers) noexcept;

  /// Keeps the arena, and destroys the one that it replaces.
  void keep(std::unique_ptr<helper_arena> unused) noexcept;

 private:
  single_turn turn_;
  std::array<std::unique_ptr<helper_arena>, 16> kept_{};  // under `turn_`
  std::size_t next_ = 0;                                  // the place that is replaced next
};

/// The arenas of one executor, one after another.
/// Threads  any
class helper_arenas {
 public:
  /// Makes nothing yet.
  explicit helper_arenas(int helpers) noexcept : helpers_(helpers) {}

  /// Leaves the arena to later executors.
  ~helper_arenas();
  helper_arenas(const helper_arenas&) = delete;
  helper_arenas& operator=(const helper_arenas&) = delete;

  /// The arena whose team can help a call; it lives as long as this object does.
  /// Cost     the first call: that of a thread_share, and about 10 µs
  /// Returns  null if the call has to go on alone: there is no memory for an arena, no thread can
  ///          be started, another thread is just making the arena, or arena.3 forbids it
  helper_arena* find() noexcept;

  /// Arenas that were made so far. Threads: none may be inside `find`.
  std::size_t made() const noexcept { return made_.size(); }

 private:
  helper_arena* make();

  // Arenas that have thrown stay in memory, so their number is limited.
  static constexpr std::size_t arenas_max = 64;

  const int helpers_;
  std::atomic<helper_arena*> current_ = nullptr;
  single_turn making_;
  std::optional<thread_share> share_;                // under `making_`
  std::vector<std::unique_ptr<helper_arena>> made_;  // under `making_`
};

}  // namespace shale::parallel
