#include "parallel/threads/reader_team.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "storage/faults/fault_guard.hpp"
#include "storage/system/blocked_signals.hpp"

namespace shale::parallel {

namespace {

// Each thread waits until its piece is complete, so several threads are needed to keep a device
// busy. How many pieces are read ahead is the caller's choice (executor/read_ahead.hpp).
constexpr index_t threads_max = 4;

}  // namespace

reader_team::reader_team(index_t count, index_t ahead, std::function<void(index_t)> read)
    : count_(count),
      ahead_(ahead),
      read_(std::move(read)),
      progress_(static_cast<std::size_t>(count)),
      limit_(std::min(ahead, count)) {
  start_threads(std::min({ahead, count, threads_max}));
}

reader_team::~reader_team() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  allowed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

// Starts as many threads as the system allows. If there is none, threads that wait for a number
// read it themselves.
void reader_team::start_threads(index_t wanted) noexcept {
  const detail::blocked_signals blocked;
  try {
    threads_.reserve(static_cast<std::size_t>(wanted));
    for (index_t k = 0; k < wanted; ++k) threads_.emplace_back([this] { keep_reading(); });
  } catch (...) {
  }
}

void reader_team::keep_reading() {
  detail::unblock_fault_signal();
  std::unique_lock lock(mutex_);
  for (;;) {
    allowed_.wait(lock, [&] { return stopped_ || next_ < limit_.load(std::memory_order_relaxed); });
    if (stopped_) return;
    read_next(lock);
  }
}

void reader_team::read_next(std::unique_lock<std::mutex>& lock) {
  const index_t number = next_++;
  lock.unlock();
  std::exception_ptr failure;
  try {
    read_(number);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (failure && !failure_) failure_ = failure;
  progress_[static_cast<std::size_t>(number)].store(failure ? progress::failed : progress::done,
                                                    std::memory_order_release);
  finished_.notify_all();
}

// Takes the lock only if the limit rises.
void reader_team::raise_limit(index_t limit) {
  if (limit <= limit_.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(mutex_);
    if (limit <= limit_.load(std::memory_order_relaxed)) return;
    limit_.store(limit, std::memory_order_relaxed);
  }
  allowed_.notify_all();
}

void reader_team::wait_for(index_t number) {
  raise_limit(std::min(number + 1 + ahead_, count_));
  const auto& state = progress_[static_cast<std::size_t>(number)];
  if (state.load(std::memory_order_acquire) == progress::done) return;
  std::unique_lock lock(mutex_);
  while (next_ <= number) read_next(lock);
  finished_.wait(lock, [&] { return state.load(std::memory_order_acquire) != progress::waiting; });
  if (state.load(std::memory_order_acquire) == progress::failed) std::rethrow_exception(failure_);
}

}  // namespace shale::parallel
