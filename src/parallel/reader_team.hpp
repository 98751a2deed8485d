// Reading in numbered pieces, done by threads of its own ahead of the work that needs it.
//
// Invariants
//   readers.1  every number is read at most once, in ascending order of beginning: by one of the
//            threads, or by whoever waits for it and finds it not begun
//   readers.2  nothing is begun that lies further than `ahead` behind the furthest number waited
//              for
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
  /// Begins with the first `ahead` of `count` numbers at once. `read` is called from several
  /// threads, for different numbers.
  reader_team(index_t count, index_t ahead, std::function<void(index_t)> read);

  /// Waits for what has been begun.
  ~reader_team();
  reader_team(const reader_team&) = delete;
  reader_team& operator=(const reader_team&) = delete;

  /// Returns when `number` has been read.
  /// Throws   what reading it threw, or what reading another number threw before
  void wait_for(index_t number);

 private:
  enum class progress : char { waiting, done, failed };

  void start_threads(index_t wanted) noexcept;
  void keep_reading();
  void read_next(std::unique_lock<std::mutex>& lock);

  const index_t count_;
  const index_t ahead_;
  const std::function<void(index_t)> read_;
  std::vector<std::atomic<progress>> progress_;

  std::mutex mutex_;
  std::condition_variable allowed_;
  std::condition_variable finished_;
  index_t next_ = 0;   // not begun yet
  index_t limit_ = 0;  // may be begun up to here
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace shale::parallel
