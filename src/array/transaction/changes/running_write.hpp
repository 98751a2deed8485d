// Lets a transaction wait for a write, and lets an abort from inside the write end it.
#pragma once

#include <optional>

#include "array/transaction/state/transaction_state.hpp"
#include "parallel/executor/call_scope.hpp"

namespace shale::arrays {

/// Marks a write of many chunks or of a mapping's bytes while it lives. Either the commit contains
/// the whole write, or the write throws.
class [[nodiscard]] running_write {
 public:
  explicit running_write(transaction_state& owner) noexcept
      : owner_(owner),
        visit_(std::in_place, owner.operations.writes()),
        scope_(std::in_place, &owner) {}

  /// Completes an abort that was called from inside the write (change.6).
  ~running_write();
  running_write(const running_write&) = delete;
  running_write& operator=(const running_write&) = delete;

 private:
  transaction_state& owner_;
  std::optional<operation_gate::visit> visit_;
  std::optional<parallel::call_scope> scope_;
};

}  // namespace shale::arrays
