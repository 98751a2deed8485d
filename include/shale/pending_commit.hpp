// A transaction that was committed without waiting, while it becomes durable.
#pragma once

#include <cstdint>
#include <memory>

namespace [[gnu::visibility("default")]] shale {

/// A transaction that was committed without waiting (`transaction::commit_async`). Copies share it;
/// none of them has to be kept.
/// Throws   invalid_argument from every member, if the handle was moved from
/// Threads  every member may be called from any thread
class pending_commit {
 public:
  /// The number of the transaction's generation. If it is published together with later ones, no
  /// snapshot ever shows it alone.
  std::uint64_t generation() const;

  /// Whether the transaction, with all before it, is durable. False while it is under way, and if
  /// it failed.
  bool durable() const;

  /// Returns once the transaction is durable. If no later one has begun, the writer lock is free by
  /// then.
  /// Throws   what `commit` throws if its first sync or a later step fails; the error of an earlier
  ///          transaction with whose changes this one began. Then none of its changes is in the
  ///          file, unless the message says that its generation may exist. invalid_argument in a
  ///          forked child of the process that committed, unless the transaction was durable at the
  ///          fork; out_of_memory
  void wait() const;

 private:
  friend class transaction;
  struct implementation;
  explicit pending_commit(std::shared_ptr<const implementation> made) noexcept;
  std::shared_ptr<const implementation> implementation_;
};

}  // namespace shale
