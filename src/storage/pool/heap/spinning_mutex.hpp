// A mutex for critical sections of some hundred nanoseconds. A thread that finds it locked spins
// for about a microsecond before it sleeps, because sleeping and waking cost fifty times such a
// section.
#pragma once

#include <pthread.h>

namespace shale::detail {

/// Meets the standard's Lockable requirements, except for try_lock.
class spinning_mutex {
 public:
  spinning_mutex() noexcept = default;
  ~spinning_mutex() { pthread_mutex_destroy(&mutex_); }
  spinning_mutex(const spinning_mutex&) = delete;
  spinning_mutex& operator=(const spinning_mutex&) = delete;

  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
};

}  // namespace shale::detail
