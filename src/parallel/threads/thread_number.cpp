#include "parallel/threads/thread_number.hpp"

#include <bit>

namespace shale::parallel {

thread_number::thread_number() noexcept {
  std::uint32_t taken = taken_.load(std::memory_order_relaxed);
  while (std::countr_one(taken) < count) {
    const int free = std::countr_one(taken);
    if (taken_.compare_exchange_weak(taken, taken | std::uint32_t{1} << free,
                                     std::memory_order_acquire, std::memory_order_relaxed)) {
      number_ = free;
      return;
    }
  }
}

thread_number::~thread_number() {
  if (number_ < count) taken_.fetch_and(~(std::uint32_t{1} << number_), std::memory_order_release);
}

}  // namespace shale::parallel
