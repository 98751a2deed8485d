#include "array/transaction/state/base_generation.hpp"

#include <mutex>

namespace shale::arrays {

void base_generation::let_go() noexcept {
  std::optional<format::generation_view> ended;  // destroyed after the lock is released
  const std::lock_guard whole(lock_);
  ended.swap(view_);
}

void base_generation::let_go_in_child() noexcept {
  if (forks_ != detail::fork_generation()) let_go();
}

}  // namespace shale::arrays
