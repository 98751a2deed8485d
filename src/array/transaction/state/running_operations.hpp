// The operations of a transaction that run, and whether others may begin.
//
// Invariants
//   change.2  commit, abort and replace_by wait for writes and chunk operations that have begun,
//             and no operation begins after that: nothing is written once the writer lock may be
//             released. Commit lets running writes finish; the other two make writes of chunks fail
#pragma once

#include <atomic>

#include "array/transaction/state/operation_gate.hpp"

namespace shale::arrays {

/// Threads  every member may be called from any thread
class running_operations {
 public:
  /// Writes of many chunks or of a mapping's bytes. This gate is closed when the transaction ends.
  operation_gate& writes() noexcept { return writes_; }
  const operation_gate& writes() const noexcept { return writes_; }

  /// Single operations on chunks; closed after `writes`, because writes consist of them.
  operation_gate& chunks() noexcept { return chunks_; }
  const operation_gate& chunks() const noexcept { return chunks_; }

  /// Asks running writes to throw. If a write called abort, its end completes the abort.
  void ask_for_abort() noexcept { abort_asked_ = true; }
  bool abort_asked() const noexcept { return abort_asked_; }

 private:
  operation_gate writes_;
  operation_gate chunks_;
  std::atomic<bool> abort_asked_ = false;
};

}  // namespace shale::arrays
