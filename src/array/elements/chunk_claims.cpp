#include "array/elements/chunk_claims.hpp"

#include <algorithm>

namespace shale::arrays {

chunk_claims::claim chunk_claims::take(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock,
              [&] { return std::find(taken_.begin(), taken_.end(), number) == taken_.end(); });
  taken_.push_back(number);
  return claim(*this, number);
}

void chunk_claims::end(std::uint64_t number) noexcept {
  {
    const std::lock_guard lock(mutex_);
    *std::find(taken_.begin(), taken_.end(), number) = taken_.back();
    taken_.pop_back();
  }
  ended_.notify_all();
}

}  // namespace shale::arrays
