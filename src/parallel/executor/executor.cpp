#include "shale/executor.hpp"

#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/info.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "parallel/executor/bound_executor.hpp"
#include "parallel/executor/executor_state.hpp"
#include "shale/error.hpp"
#include "shale/memory_pool.hpp"
#include "storage/system/fork_safe_mutex.hpp"
#include "storage/system/system_memory.hpp"

namespace shale {

namespace {

int available_processors() noexcept {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return 1;
}

std::size_t default_budget_bytes() {
  constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();
  const auto memory = detail::read_system_memory();
  const std::size_t bytes =
      std::min(memory.available_bytes.value_or(unknown), memory.limit_bytes.value_or(unknown));
  return bytes == unknown ? std::size_t{1} << 30 : bytes / 2;
}

// By default oneTBB starts at most as many threads as there are processors, even if an arena asks
// for more. A `global_control` raises this limit, but the lowest of all controls counts, so one
// control for each executor would not help. The first executor that wants more threads makes a
// single control with the largest number that any executor may ask for.
void allow_more_threads_than_processors() {
  // It is never destroyed, because static objects may still compute while the process ends.
  // Memory checkers must find the pointer.
  [[gnu::used]] static const auto* const control =
      new tbb::global_control(tbb::global_control::max_allowed_parallelism, executor::threads_max);
}

int threads_of(const executor_options& options) {
  if (options.threads < 0 || options.threads > executor::threads_max)
    throw error(errc::invalid_argument, "an executor cannot have that many threads",
                {"got " + std::to_string(options.threads) + ", wanted 1 to " +
                 std::to_string(executor::threads_max) + ", or 0 for one a processor"});
  const int wanted = options.threads > 0 ? options.threads
                                         : std::min(available_processors(), executor::threads_max);
  const detail::critical_section asking;  // oneTBB has locks of its own
  if (wanted > tbb::info::default_concurrency()) allow_more_threads_than_processors();
  // The host program may have set a lower limit, or may have used oneTBB before the limit was
  // raised. oneTBB would then print a warning to standard error if the arena asked for more.
  const std::size_t allowed =
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return static_cast<int>(std::clamp<std::size_t>(allowed, 1, static_cast<std::size_t>(wanted)));
}

}  // namespace

executor::implementation::implementation(const executor_options& options)
    : threads(threads_of(options)),
      progress(options.progress),
      tokens(options.memory_bytes > 0 ? options.memory_bytes : default_budget_bytes()),
      helpers(threads - 1) {}

executor::executor(const executor_options& options)
    : implementation_(detail::allocating([&] {
        detail::require_enumerator(options.checksums, checksum_use::compared, "checksum_use");
        return std::make_shared<implementation>(options);
      })),
      pool_(options.pool ? options.pool : &memory_pool::default_pool()),
      checksums_(options.checksums) {}

executor::executor(std::shared_ptr<implementation> shared, memory_pool& pool,
                   checksum_use checksums) noexcept
    : implementation_(std::move(shared)), pool_(&pool), checksums_(checksums) {}

executor executor::with_pool(memory_pool& pool) const noexcept {
  return {implementation_, pool, checksums_};
}

executor executor::with_checksums(checksum_use use) const noexcept {
  return {implementation_, *pool_, use};
}

executor::~executor() = default;

executor& executor::shared() {
  // It is never destroyed, because engine calls may still run in other threads while the process
  // ends. It is made without a lock: if the process forked while another thread held a lock, the
  // child would wait for ever. If two threads make one at the same time, the second one is thrown
  // away.
  static std::atomic<executor*> instance = nullptr;
  executor* found = instance.load(std::memory_order_acquire);
  if (found == nullptr) {
    auto made = detail::allocating([] { return std::make_unique<executor>(); });
    if (instance.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel))
      found = made.release();
  }
  return *found;
}

executor& executor::current() {
  executor* const bound = parallel::bound_executor();
  return bound ? *bound : shared();
}

executor::scope::scope(const executor& on) noexcept
    : on_(on.implementation_, *on.pool_, on.checksums_), outer_(parallel::bound_executor()) {
  parallel::bound_executor() = &on_;
}

executor::scope::~scope() { parallel::bound_executor() = outer_; }

int executor::threads() const noexcept { return implementation_->threads; }
std::size_t executor::memory_bytes() const noexcept {
  return implementation_->tokens.budget_bytes();
}
memory_pool& executor::pool() const noexcept { return *pool_; }

void executor::forget_chunks() noexcept { implementation_->decoded.clear(); }
std::size_t executor::kept_chunk_bytes() const noexcept {
  return implementation_->decoded.held_bytes();
}

executor_statistics executor::statistics() const noexcept {
  executor_statistics result = implementation_->count.statistics();
  result.scratch_bytes_peak = implementation_->tokens.peak_bytes();
  return result;
}

void executor::cancel() noexcept {
  implementation_->cancelled.store(true, std::memory_order_relaxed);
}
void executor::resume() noexcept {
  implementation_->cancelled.store(false, std::memory_order_relaxed);
}
bool executor::cancelled() const noexcept {
  return implementation_->cancelled.load(std::memory_order_relaxed);
}

}  // namespace shale
