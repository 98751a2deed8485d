#include "shale/executor.hpp"

#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

#include "parallel/executor_state.hpp"
#include "shale/memory_pool.hpp"

namespace shale {

namespace {

int available_processors() noexcept {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return 1;
}

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

// MemAvailable of /proc/meminfo.
std::size_t available_memory_bytes() {
  std::ifstream in("/proc/meminfo");
  for (std::string key; in >> key;) {
    std::size_t kib = 0;
    if (key == "MemAvailable:" && in >> kib) return kib << 10;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return no_limit;
}

// The lowest memory.max on the way from this process's cgroup (version 2) to the root; version 1's
// limit where that hierarchy is in use.
std::size_t cgroup_limit_bytes() {
  std::size_t limit = no_limit;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto colon = line.find(':', line.find(':') + 1);
    if (colon == std::string::npos) continue;
    const bool unified = line.starts_with("0::");
    if (!unified && line.find(":memory:") == std::string::npos) continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::string path = line.substr(colon + 1);; path.erase(path.rfind('/'))) {
      std::ifstream in(root + path + file);
      if (std::size_t bytes = 0; in >> bytes) limit = std::min(limit, bytes);
      if (path.empty() || path == "/") break;
    }
  }
  return limit;
}

std::size_t default_budget_bytes() {
  const std::size_t bytes = std::min(available_memory_bytes(), cgroup_limit_bytes());
  return bytes == no_limit ? std::size_t{1} << 30 : bytes / 2;
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

void memory_tokens::take(std::size_t bytes) noexcept {
  const std::size_t held = held_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (held > peak && !peak_bytes_.compare_exchange_weak(peak, held, std::memory_order_relaxed)) {
  }
}

void memory_tokens::give(std::size_t bytes) noexcept {
  held_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace parallel

executor::implementation::implementation(const executor_options& options)
    : threads(options.threads > 0 ? options.threads : available_processors()),
      pool(options.pool ? options.pool : &memory_pool::default_pool()),
      progress(options.progress),
      tokens(options.memory_bytes > 0 ? options.memory_bytes : default_budget_bytes()),
      arena(threads) {
  allow_threads(threads);
}

executor::executor(const executor_options& options)
    : implementation_(std::make_unique<implementation>(options)) {}

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
memory_pool& executor::pool() const noexcept { return *implementation_->pool; }

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
          .tiles_decoded = read(count.tiles_decoded)};
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
