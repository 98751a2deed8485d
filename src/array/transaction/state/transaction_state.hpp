// The state of one transaction, which all its parts share. The classes of the room `changes` change
// it and end it; shared_transaction gives it to threads and handles.
//
// Invariants (change.2 is in running_operations.hpp, change.3 and change.4 in written_arrays.hpp,
// change.6 in changes/transaction_end.hpp, change.7 in changes/shape_change.hpp)
//   change.1  one thread at a time uses the format's transaction (the lock `state`), except that
//             chunks and dense bytes are read and written outside that lock
//   change.5  no lock that a chunk operation takes is held while a parallel loop runs: otherwise
//             the loop could need the very threads that wait for that lock
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "array/transaction/state/base_generation.hpp"
#include "array/transaction/state/commit_pipeline.hpp"
#include "array/transaction/state/reader_file.hpp"
#include "array/transaction/state/running_operations.hpp"
#include "array/transaction/state/transaction_locks.hpp"
#include "array/transaction/state/written_arrays.hpp"
#include "format/generations/generation_view.hpp"
#include "format/transaction/transaction.hpp"
#include "parallel/executor/decoded_tile_cache.hpp"

namespace shale::arrays {

/// This object and the tiles of its written arrays own each other. Only the end of the transaction
/// separates them.
struct transaction_state : std::enable_shared_from_this<transaction_state> {
  /// `granting` has granted the transaction, and is told when it ends.
  transaction_state(std::shared_ptr<reader_file> opened, std::shared_ptr<commit_pipeline> granting,
                    format::transaction begun, format::generation_view pinned);

  const std::string& path() const noexcept { return readers->path(); }
  const std::shared_ptr<const parallel::tile_owner>& tile_owner() const noexcept {
    return readers->tile_owner();
  }

  /// How messages name an array.
  std::string label(std::string_view name) const;

  /// Throws   invalid_argument once the transaction ends
  void require_active() const { require_open(operations.writes()); }

  /// The same for operations on chunks. They are refused later than writes, because the writes that
  /// still run need them.
  void require_chunks_active() const { require_open(operations.chunks()); }

  /// Called at the end of a write, and after waiting for writes.
  /// Throws   invalid_argument if the transaction was aborted meanwhile
  void require_not_aborted() const;

  /// Makes `commit` refuse, because a change was made in part and could not be undone.
  void refuse_commit() noexcept;

  const std::shared_ptr<reader_file> readers;
  const std::shared_ptr<commit_pipeline> pipeline;
  const std::uint64_t generation;  ///< the one that commit publishes
  const transaction_locks locks;
  running_operations operations;
  std::optional<format::transaction> inner;  ///< nothing after the end (change.1)
  base_generation base;
  written_arrays written;

 private:
  void require_open(const operation_gate& gate) const;
};

}  // namespace shale::arrays
