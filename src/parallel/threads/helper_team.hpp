// Lets threads help the calls of one executor. The thread that makes a call works on it from the
// start; helpers join while the call is open. The caller waits only for helpers that have joined.
// So a thread that is blocked elsewhere, in a kernel that waits for a lock or for another executor,
// cannot block the calls of other threads.
//
// A call has *places*, one for each helper that it can use. Calls with free places form a ring. A
// helper is a *task* in oneTBB's arena: it takes a place of the first call in the ring, works
// there, and then takes the next place, until the ring is empty. A task that was handed to the
// arena and has not begun is *coming*. New tasks are handed over if there are more free places than
// coming tasks. Each helper that begins hands over at most two more, so the number of helpers grows
// like a tree and no thread pays for starting all of them.
//
// Invariants
//   team.1  at most `helpers_max` helpers run at once, for all open calls together; callers are not
//           counted, each runs in its own thread
//   team.2  a helper touches a call only between joining and leaving it; no helper joins once
//           `close` has begun, and all have left when it returns
//   team.3  the threads inside a call have different numbers: 0 is the caller's, and 1 .. places
//           are the helpers'
//   team.4  at most `helpers_max` tasks of the team are in the arena, even if none of them can
//           start
//   team.5  no foreign function is called while the team's lock is held
#pragma once

#include <tbb/task_arena.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace shale::parallel {

class helper_team {
 public:
  /// Gives up the executor's share of a team. The team is deleted when its last task ends, which
  /// may be after its executor was destroyed.
  struct releaser {
    void operator()(helper_team* team) const noexcept { team->release(); }
  };
  using handle = std::unique_ptr<helper_team, releaser>;

  /// A team of at most `helpers_max` helpers.
  static handle make(int helpers_max) { return handle(new helper_team(helpers_max)); }

  /// The number of this team's tasks in the arena, begun or not (team.4).
  int tasks() const noexcept {
    const std::lock_guard lock(mutex_);
    return tasks_;
  }

  /// Whether handing over a task has thrown. The arena then gets no more tasks (arena.1), and the
  /// counts of tasks no longer change.
  bool failed() const noexcept { return entrance_.failed(); }

  /// A call that helpers may join between construction and `close`.
  class open_call {
   public:
    /// Up to `places` helpers call `work(context, number)` on threads of `arena`. `work` must not
    /// throw. The team, the arena and the context must live until `close`. The constructor waits
    /// for no thread.
    open_call(helper_team& team, tbb::task_arena& arena, int places, void (*work)(void*, int),
              void* context) noexcept;

    /// Closes the call if it is still open.
    ~open_call() { close(); }
    open_call(const open_call&) = delete;
    open_call& operator=(const open_call&) = delete;

    /// Lets no more helper join, and waits for those that have joined. Their work happens before
    /// the return. Not called in a child that was forked meanwhile, which has no helpers (loop.6).
    void close() noexcept;

   private:
    friend helper_team;

    helper_team& team_;
    tbb::task_arena& arena_;
    void (*const work_)(void*, int);
    void* const context_;

    // The team's lock protects the next two members.
    struct ring_place {
      int vacant;     // places that no helper has taken
      int taken = 0;  // helpers that have joined so far
      bool in_ring = false;
      open_call* next = nullptr;
      open_call* previous = nullptr;
    };
    ring_place places_;
    bool caller_waits_ = false;

    std::atomic<int> inside_ = 0;  // changed under the lock
    std::condition_variable left_{};
  };

 private:
  // The ring of calls that have free places.
  class call_ring {
   public:
    bool empty() const noexcept { return first_ == nullptr; }
    int free_places() const noexcept { return free_places_; }

    void add(open_call& call) noexcept;
    void remove(open_call& call) noexcept;

    // Takes a place of the first call and moves the ring on. So the calls get helpers in turn:
    // every call gets one more helper before any call gets two more. The ring is not empty.
    open_call& take_place() noexcept;

   private:
    open_call* first_ = nullptr;
    int free_places_ = 0;
  };

  // Hands tasks to an arena of oneTBB.
  class task_entrance {
   public:
    bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

    // Hands over `count` calls of `body(team)`; fewer if the arena throws. The number of the team's
    // users is raised for each, even for one that made the arena throw.
    void hand_over(tbb::task_arena& arena, int count, void (*body)(void*),
                   helper_team& team) noexcept;

   private:
    // Only one thread at a time is inside the arena: if the arena throws in one thread, another
    // thread inside it may wait for ever. Never held together with the team's lock.
    std::mutex entering_;
    std::atomic<bool> failed_ = false;
  };

  explicit helper_team(int helpers_max) noexcept : helpers_max_(helpers_max) {}
  ~helper_team() = default;

  void release() noexcept;
  int claim_tasks() noexcept;
  void start_tasks(tbb::task_arena& arena, int count) noexcept;
  static void help(void* team) noexcept;
  void help_open_calls() noexcept;

  std::atomic<int> users_ = 1;  // the executor and each task
  const int helpers_max_;
  task_entrance entrance_;

  mutable std::mutex mutex_;  // guards what follows
  call_ring calls_;
  int tasks_ = 0;   // tasks handed to the arena that have not ended
  int coming_ = 0;  // tasks handed to the arena that have not begun
};

}  // namespace shale::parallel
