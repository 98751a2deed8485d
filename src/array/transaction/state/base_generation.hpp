// The generation that a transaction changes. The transaction pins it until it ends.
#pragma once

#include <optional>

#include "format/generations/generation_view.hpp"
#include "storage/system/fork_handlers.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::arrays {

class base_generation {
 public:
  explicit base_generation(format::generation_view base) : view_(std::move(base)) {}

  /// Nothing after `let_go`. The caller holds the transaction's state lock, or is inside an
  /// operation whose end the transaction awaits before it lets go.
  const std::optional<format::generation_view>& view() const noexcept { return view_; }

  /// Ends the pin. The caller holds the transaction's state lock.
  void let_go() noexcept;

  /// Ends the pin in a forked child, which has no part in the state lock. Otherwise the child would
  /// pin the generation as long as it lives. Does nothing in a child that was made without the
  /// handlers of fork, where the lock of this object may stay taken for ever.
  void let_go_in_child() noexcept;

 private:
  const unsigned forks_ = detail::fork_generation();
  detail::fork_safe_mutex lock_;
  std::optional<format::generation_view> view_;
};

}  // namespace shale::arrays
