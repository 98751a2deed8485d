#include "shale/executor.hpp"

#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/info.h>

#include <algorithm>
#include <limits>

#include "parallel/executor_state.hpp"
#include "shale/memory_pool.hpp"
#include "storage/system_memory.hpp"

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

// oneTBB starts no more workers than there are processors, whatever an arena asks for, unless told.
// Executors ask for different numbers and the lowest of all controls wins, so there is one, with
// room for any, made when the first executor wants more.
void allow_threads(int threads) {
  constexpr std::size_t most = 256;
  if (threads <= tbb::info::default_concurrency()) return;
  static const tbb::global_control control(tbb::global_control::max_allowed_parallelism, most);
}

}  // namespace

namespace parallel {

std::size_t memory_tokens::left_bytes() const noexcept {
  return budget_bytes_ - std::min(held_bytes_.load(std::memory_order_relaxed), budget_bytes_);
}

std::size_t memory_tokens::held_bytes() const noexcept {
  return held_bytes_.load(std::memory_order_relaxed);
}

void memory_tokens::take(std::size_t bytes) noexcept {
  const std::size_t held = held_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (held > peak && !peak_bytes_.compare_exchange_weak(peak, held, std::memory_order_relaxed)) {
  }
}

void memory_tokens::give(std::size_t bytes) noexcept {
  held_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

window_memory::window_memory(executor& on, std::size_t wanted_bytes)
    : tokens_(on.state().tokens), bytes_(std::min(wanted_bytes, tokens_.left_bytes())) {
  tokens_.take(bytes_);
  memory_pool& pool = on.pool();
  reserved_ = pool.reserve(bytes_);
  tokens_.give(bytes_ - reserved_.bytes());
  bytes_ = reserved_.bytes();
  if (pool.statistics().idle_bytes + tokens_.held_bytes() > tokens_.budget_bytes()) pool.trim();
}

window_memory::~window_memory() { tokens_.give(bytes_); }

}  // namespace parallel

executor::implementation::implementation(const executor_options& options)
    : threads(options.threads > 0 ? options.threads : available_processors()),
      progress(options.progress),
      tokens(options.memory_bytes > 0 ? options.memory_bytes : default_budget_bytes()),
      arena(threads) {
  allow_threads(threads);
}

executor::executor(const executor_options& options)
    : implementation_(std::make_shared<implementation>(options)),
      pool_(options.pool ? options.pool : &memory_pool::default_pool()) {}

executor::executor(std::shared_ptr<implementation> shared, memory_pool& pool) noexcept
    : implementation_(std::move(shared)), pool_(&pool) {}

executor executor::with_pool(memory_pool& pool) const noexcept { return {implementation_, pool}; }

executor::~executor() = default;

executor& executor::shared() {
  // Never destroyed: engine calls may still run in other threads while the process ends.
  static executor* const instance = new executor;
  return *instance;
}

int executor::threads() const noexcept { return implementation_->threads; }
std::size_t executor::memory_bytes() const noexcept {
  return implementation_->tokens.budget_bytes();
}
memory_pool& executor::pool() const noexcept { return *pool_; }

executor_statistics executor::statistics() const noexcept {
  const auto& count = implementation_->count;
  const auto read = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  return {.calls = read(count.calls),
          .tiles = read(count.tiles),
          .bytes_read = read(count.bytes_read),
          .bytes_written = read(count.bytes_written),
          .scratch_bytes_peak = implementation_->tokens.peak_bytes(),
          .windows = read(count.windows),
          .windows_dropped = read(count.windows_dropped),
          .mapped_tiles = read(count.mapped_tiles),
          .tiles_decoded = read(count.tiles_decoded),
          .stored_bytes_read = read(count.stored_bytes_read)};
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
