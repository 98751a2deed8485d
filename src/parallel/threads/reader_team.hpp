// Reads numbered pieces ahead of the work that needs them, with threads of its own.
//
// Invariants
//   readers.1  every number is read at most once, and reads begin in ascending order: in one of the
//              team's threads, or in a thread that waits for a number that has not begun
//   readers.2  a read begins only if its number is at most `ahead` above the highest number that a
//              thread has waited for
//   readers.3  once a thread has waited for a number, all numbers up to `ahead` above it are read
//              without another wait, also if the number had been read before
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "shale/index.hpp"

namespace shale::parallel {

class reader_team {
 public:
  /// Begins to read the first `ahead` of `count` numbers at once. `read` is called from several
  /// threads, with different numbers.
  reader_team(index_t count, index_t ahead, std::function<void(index_t)> read);

  /// Waits for the reads that have begun.
  ~reader_team();
  reader_team(const reader_team&) = delete;
  reader_team& operator=(const reader_team&) = delete;

  /// Returns when `number` has been read, and lets the team read `ahead` numbers beyond it.
  /// Cost     without a lock if the number has been read, and a higher one was waited for before
  /// Throws   the first exception of `read`, if reading this number has failed
  void wait_for(index_t number);

 private:
  enum class progress : char { waiting, done, failed };

  void start_threads(index_t wanted) noexcept;
  void keep_reading();
  void read_next(std::unique_lock<std::mutex>& lock);
  void raise_limit(index_t limit);

  const index_t count_;
  const index_t ahead_;
  const std::function<void(index_t)> read_;
  std::vector<std::atomic<progress>> progress_;

  std::mutex mutex_;
  std::condition_variable allowed_;
  std::condition_variable finished_;
  index_t next_ = 0;  // the lowest number whose read has not begun
  // Reads of lower numbers may begin (readers.2). Rises under the lock.
  std::atomic<index_t> limit_;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace shale::parallel
