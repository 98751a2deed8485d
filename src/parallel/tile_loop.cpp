#include "parallel/tile_loop.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "parallel/executor_state.hpp"
#include "parallel/worker_team.hpp"
#include "shale/error.hpp"
#include "storage/fault_guard.hpp"

namespace shale::parallel {

namespace {

// Tiles may load from mappings: a thread that blocks SIGBUS would die of a lost file. oneTBB's
// threads inherit the mask of whoever made them start; the caller's own mask is the caller's.
void unblock_once() {
  static thread_local const bool unblocked = (detail::unblock_fault_signal(), true);
  (void)unblocked;
}

struct loop {
  executor::implementation& state;
  const index_t count;
  void (*const body)(void*, index_t, int);
  void* const context;
  const std::uint64_t progress_bytes;
  const std::thread::id caller = std::this_thread::get_id();

  std::atomic<index_t> next = 0;
  std::atomic<index_t> finished = 0;
  std::atomic<bool> stop = false;
  // The edges between the caller and its workers: `begun` is stored with release before any worker
  // loads it with acquire; `ended` the other way round.
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  std::mutex mutex{};
  std::exception_ptr failure{};
  index_t reported = 0;  // guarded by the executor's progress mutex

  void fail(std::exception_ptr what) {
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::move(what);
    stop.store(true, std::memory_order_relaxed);
  }

  // After a tile: tells the sink about every hundredth part.
  void report() {
    const index_t done = finished.fetch_add(1, std::memory_order_relaxed) + 1;
    if (!state.progress || progress_bytes == 0) return;
    if (done % std::max<index_t>(1, count / 100) != 0 && done != count) return;
    const std::lock_guard lock(state.progress_mutex);
    if (done < reported) return;  // another thread was here first with more
    reported = done;
    const auto share = static_cast<double>(done) / static_cast<double>(count);
    state.progress->advance(
        done == count ? progress_bytes
                      : static_cast<std::uint64_t>(share * static_cast<double>(progress_bytes)),
        progress_bytes);
  }

  void work(int worker) {
    (void)begun.load(std::memory_order_acquire);
    if (std::this_thread::get_id() != caller) unblock_once();
    while (!stop.load(std::memory_order_relaxed)) {
      if (state.cancelled.load(std::memory_order_relaxed)) {
        fail(std::make_exception_ptr(error(errc::cancelled, "the call was cancelled")));
        break;
      }
      const index_t tile = next.fetch_add(1, std::memory_order_relaxed);
      if (tile >= count) break;
      try {
        body(context, tile, worker);
        report();
      } catch (...) {
        fail(std::current_exception());
      }
    }
    ended.fetch_add(1, std::memory_order_release);
  }
};

}  // namespace

void run_tiles(executor& on, index_t count, void (*body)(void*, index_t, int), void* context,
               const loop_options& options) {
  auto& state = on.state();
  loop run{state, count, body, context, options.progress_bytes};
  const int allowed =
      options.most_workers > 0 ? std::min(options.most_workers, state.threads) : state.threads;
  const int workers = static_cast<int>(std::min<index_t>(allowed, count));
  if (workers <= 1) {
    run.work(0);
  } else {
    run.begun.store(1, std::memory_order_release);
    run_workers(
        state.arena, workers, [](void* of, int worker) { static_cast<loop*>(of)->work(worker); },
        &run);
    (void)run.ended.load(std::memory_order_acquire);
  }
  state.count.tiles.fetch_add(
      static_cast<std::uint64_t>(std::min(run.next.load(std::memory_order_relaxed), count)),
      std::memory_order_relaxed);
  if (run.failure) std::rethrow_exception(run.failure);
}

}  // namespace shale::parallel
