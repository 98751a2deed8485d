// Ends a transaction: commit, commit without waiting, replace_by and abort. change.2 says which
// operations they wait for (running_operations.hpp). change.3 and change.4 say what happens to
// mappings (written_arrays.hpp).
//
// Invariants
//   change.6  a call from inside a write (a progress sink, a tile source) never waits for that
//             write. There commit throws, and abort only asks for the end: the write completes the
//             abort. A thread that waits for writes does not hold the lock `changes`, so a call
//             from inside a write can take it, and finds that the transaction has ended. Only one
//             call of commit and replace_by gets that far, because they close the gate of writes
//             while they hold the lock. An abort may overtake that call: it asks for the end first,
//             and the call sees this when it has the lock again
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "array/transaction/state/commit_state.hpp"
#include "array/transaction/state/transaction_state.hpp"

namespace shale::arrays {

/// Threads  any; one of them ends the transaction
class transaction_end {
 public:
  explicit transaction_end(transaction_state& owner) noexcept : owner_(owner) {}

  /// Publishes all changes, and returns the number of their generation. The transaction has ended
  /// then, even if this throws, unless it is called from inside a write.
  /// Throws   as shale::transaction::commit
  std::uint64_t commit();

  /// Ends as `commit` does, except that the generation may become durable later.
  std::shared_ptr<commit_state> commit_async();

  /// Puts the container at the path `other` in the place of this one, and ends the transaction.
  /// Throws   as shale::transaction::replace_by
  void replace_by(const std::string& other);

  /// Does nothing if the transaction has ended. A forked child only ends its pin of the base.
  void abort() noexcept;

 private:
  void require_outside_of_writes(const char* advice) const;
  void close(operation_gate& gate) noexcept;
  void end_operations() noexcept;
  template <class LastStep>
  void end_by(LastStep&& last_step);
  void finish_mappings();
  void publish();
  std::shared_ptr<commit_state> publish_later();
  void keep_mappings() noexcept;
  bool goes_on() const noexcept;
  void end() noexcept;

  transaction_state& owner_;
};

}  // namespace shale::arrays
