#include "parallel/executor/tile_loop.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>

#include "core/allocating.hpp"
#include "parallel/executor/bound_executor.hpp"
#include "parallel/executor/call_scope.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/shared_work.hpp"
#include "parallel/threads/helper_team.hpp"
#include "shale/error.hpp"

namespace shale::parallel {

namespace {

// Keeps the first exception of a loop.
class first_failure {
 public:
  bool occurred() const noexcept { return occurred_.load(std::memory_order_relaxed); }

  void record(std::exception_ptr exception) noexcept {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(exception);
    occurred_.store(true, std::memory_order_relaxed);
  }

  // Called once all tiles have ended.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::atomic<bool> occurred_ = false;
  std::mutex mutex_{};
  std::exception_ptr failure_{};
};

// Reports to the executor's progress sink how much of a loop is done.
class progress_reports {
 public:
  // With 0 bytes, nothing is reported.
  progress_reports(executor_state& state, index_t count, std::uint64_t bytes) noexcept
      : state_(state), count_(count), bytes_(bytes) {}

  // Counts an ended tile, and reports after every hundredth part of the tiles.
  void tile_ended() {
    const index_t done = finished_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (!wanted()) return;
    if (done % std::max<index_t>(1, count_ / 100) == 0 || done == count_) tell(done);
  }

  // Called by the caller's thread once all tiles have ended. The last tile's report may have been
  // dropped, because the sink was busy with an earlier one.
  void loop_ended() {
    if (wanted()) tell(count_);
  }

 private:
  bool wanted() const noexcept { return bytes_ > 0; }

  // Tells the sink that `done` tiles have ended. Does nothing if the sink is busy (loop.5) or if it
  // has been told a higher number.
  void tell(index_t done) {
    std::unique_lock turn(state_.telling, std::try_to_lock);
    if (!turn || done <= reported_) return;
    reported_ = done;
    const auto share = static_cast<double>(done) / static_cast<double>(count_);
    const foreign_call call;
    const auto report = [&] {
      state_.progress->advance(
          done == count_ ? bytes_ : static_cast<std::uint64_t>(share * static_cast<double>(bytes_)),
          bytes_);
    };
    detail::calling_back(report);
  }

  executor_state& state_;
  const index_t count_;
  const std::uint64_t bytes_;
  std::atomic<index_t> finished_ = 0;
  index_t reported_ = 0;  // used by the thread that holds `state_.telling`
};

struct loop {
  executor_state& state;
  const index_t count;
  void (*const body)(void*, index_t, int);
  void* const context;
  progress_reports progress;
  failure_listener* const listener;
  const call_scope* const inside = call_scope::innermost();
  executor* const bound = bound_executor();

  bool has_helpers = false;  // set before the loop begins
  std::atomic<index_t> next = 0;
  first_failure failure{};

  void work(int worker) noexcept {
    const call_scope::inherited inherit(inside);
    const inherited_executor binding(bound);
    std::optional<shared_work> with_others;
    if (has_helpers) with_others.emplace();
    while (!failure.occurred()) {
      try {
        if (state.cancelled.load(std::memory_order_relaxed))
          throw error(errc::cancelled, "the call was cancelled");
        const index_t tile = next.fetch_add(1, std::memory_order_relaxed);
        if (tile >= count) break;
        call_body(tile, worker);
        progress.tile_ended();
      } catch (...) {
        failure.record(std::current_exception());
        if (listener != nullptr) listener->loop_failed();
      }
    }
  }

  void call_body(index_t tile, int worker) {
    const foreign_call call;
    body(context, tile, worker);
  }
};

}  // namespace

void run_tiles(executor& on, index_t count, void (*body)(void*, index_t, int), void* context,
               const loop_options& options) {
  auto& state = state_of(on);
  const bool reports = options.progress_bytes > 0 && state.progress != nullptr &&
                       !call_scope::inside(&state.telling);
  std::optional<call_scope> reporting;  // loop.7
  if (reports) reporting.emplace(&state.telling);
  loop run{
      state,           count, body, context, {state, count, reports ? options.progress_bytes : 0},
      options.listener};
  const int allowed =
      options.workers_max > 0 ? std::min(options.workers_max, state.threads) : state.threads;
  const int workers = static_cast<int>(std::min<index_t>(allowed, count));
  helper_arena* const helpers = workers > 1 ? state.helpers.find() : nullptr;
  run.has_helpers = helpers != nullptr;
  if (helpers == nullptr) {
    run.work(0);
  } else {
    helper_team::open_call call(
        helpers->team(), helpers->arena(), workers - 1,
        [](void* argument, int worker) { static_cast<loop*>(argument)->work(worker); }, &run);
    run.work(0);
    call.close();
  }
  if (options.counted)
    state.count.tiles(
        static_cast<std::uint64_t>(std::min(run.next.load(std::memory_order_relaxed), count)));
  run.failure.rethrow();
  run.progress.loop_ended();
}

}  // namespace shale::parallel
