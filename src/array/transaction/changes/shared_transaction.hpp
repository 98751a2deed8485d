// Lets threads share one transaction. The transaction handle, its writable arrays and their tile
// sources all refer to one object of this class. It holds what the parts of a transaction share,
// and gives out the elements of arrays. The parts make the changes: array_changes,
// attribute_changes, shape_change and unit_copies, and transaction_end ends it.
//
// Invariants
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
#include <vector>

#include "array/elements/chunk_tiles.hpp"
#include "array/transaction/state/base_generation.hpp"
#include "array/transaction/state/commit_pipeline.hpp"
#include "array/transaction/state/reader_file.hpp"
#include "array/transaction/state/running_operations.hpp"
#include "array/transaction/state/transaction_locks.hpp"
#include "array/transaction/state/written_array.hpp"
#include "array/transaction/state/written_arrays.hpp"
#include "format/generations/generation_view.hpp"
#include "format/transaction/transaction.hpp"
#include "parallel/executor/call_scope.hpp"
#include "parallel/executor/decoded_tiles.hpp"
#include "shale/layout.hpp"
#include "shale/level_entry.hpp"
#include "shale/storage.hpp"

namespace shale::arrays {

class shared_transaction : public std::enable_shared_from_this<shared_transaction> {
 public:
  /// `pipeline` has granted the transaction, and is told of its end.
  shared_transaction(std::shared_ptr<reader_file> readers,
                     std::shared_ptr<commit_pipeline> pipeline, format::transaction inner,
                     format::generation_view base);
  ~shared_transaction();

  std::uint64_t generation() const noexcept { return generation_; }
  const std::string& path() const noexcept { return readers_->path(); }
  const std::shared_ptr<const parallel::tile_owner>& tile_owner() const noexcept {
    return readers_->tile_owner();
  }
  std::string label(std::string_view name) const;

  // ---- what handles ask for -------------------------------------------------------------------

  /// The record of an array as changed so far. If the array was created or updated here, `written`
  /// is set; otherwise its data is that of `base`.
  struct found_array {
    format::array_record record;
    std::shared_ptr<written_array> written;
    std::optional<format::generation_view> base;
  };
  std::optional<found_array> find(std::string_view name) const;

  /// The names as changed so far, in byte order.
  std::vector<std::string> names(std::string_view prefix, std::string_view after,
                                 std::size_t limit) const;
  std::vector<level_entry> children(std::string_view level, std::string_view after,
                                    std::size_t limit) const;

  /// Marks a write of many chunks or of a mapping's bytes while it lives. Either the commit
  /// contains the whole write, or the write throws.
  class [[nodiscard]] running_write {
   public:
    explicit running_write(shared_transaction& transaction) noexcept
        : of_(transaction),
          visit_(std::in_place, transaction.operations_.writes()),
          scope_(std::in_place, &transaction) {}

    /// Completes an abort that was called from inside the write.
    ~running_write();
    running_write(const running_write&) = delete;
    running_write& operator=(const running_write&) = delete;

   private:
    shared_transaction& of_;
    std::optional<operation_gate::visit> visit_;
    std::optional<parallel::call_scope> scope_;
  };
  running_write begin_write() noexcept { return running_write(*this); }

  /// Called at the end of a write, and after waiting for writes.
  /// Throws   invalid_argument if the transaction was aborted meanwhile
  void require_not_aborted() const;

  /// Throws   invalid_argument once the transaction ends, not_found if the array is removed
  void require_writable(const written_array& array) const;

  /// These throw as `require_writable`. The results are shared handles, because the transaction may
  /// end, or the array may be removed, in the middle of a write. A dense array's bytes are mapped
  /// at the first call; those of the base generation are copied before.
  /// Throws   also corrupt, out_of_space, io, cancelled
  storage bytes_of(written_array& array);

  /// The bytes of a dense array that the view of its elements needs, mapped for writing, from the
  /// byte `first` of the array on. If the transaction updates the array, only these are copied.
  struct dense_part {
    storage bytes;
    std::uint64_t first = 0;
  };
  dense_part part_of(written_array& array, const layout& view);

  std::shared_ptr<chunk_tiles> tiles_of(const written_array& array) const;

  /// The array's chunks as tiles that are only read.
  std::shared_ptr<const chunk_tiles> read_only_tiles_of(
      const std::shared_ptr<written_array>& array);

  /// Called when a mapping of the array lost bytes. Makes `commit` refuse, unless the array was
  /// removed: its mappings are separated from the file then.
  void note_lost_bytes(const written_array& array) noexcept;

  /// See transaction_end.
  void abort() noexcept;

  // ---- what the parts of a transaction share --------------------------------------------------

  const transaction_locks& locks() const noexcept { return locks_; }
  running_operations& operations() noexcept { return operations_; }

  /// The format's transaction; nothing after the end (change.1).
  std::optional<format::transaction>& inner() noexcept { return inner_; }
  base_generation& base() noexcept { return base_; }
  written_arrays& written() noexcept { return written_; }
  reader_file& readers() noexcept { return *readers_; }
  commit_pipeline& pipeline() noexcept { return *pipeline_; }

  /// Throws   invalid_argument once the transaction ends
  void require_active() const { require_open(operations_.writes()); }

  /// The same for operations on chunks, which end later than writes begin to be refused.
  void require_chunks_active() const { require_open(operations_.chunks()); }

  /// Makes `commit` refuse, because a change was made in part and could not be undone.
  void refuse_commit() noexcept;

 private:
  void require_open(const operation_gate& gate) const;

  const std::shared_ptr<reader_file> readers_;
  const std::shared_ptr<commit_pipeline> pipeline_;
  const std::uint64_t generation_;
  const transaction_locks locks_;
  running_operations operations_;
  std::optional<format::transaction> inner_;
  base_generation base_;
  written_arrays written_;
};

}  // namespace shale::arrays
