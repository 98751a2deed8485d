// Lets threads share one transaction. The transaction handle, its writable arrays and their tile
// sources all refer to one object of this class. It serialises the calls of the format's
// transaction, and owns the mappings.
//
// Invariants
//   change.1  one thread at a time uses the format's transaction (the lock `state_lock_`), except
//             that chunks and dense bytes are read and written outside that lock
//   change.2  commit, abort and replace_by wait for writes and chunk operations that have begun,
//             and no operation begins after that: nothing is written once the writer lock may be
//             released. Commit lets running writes finish; the other two make writes of chunks fail
//   change.3  writable mappings are read-only before their checksums are taken, and stay so
//   change.4  a mapping that outlives its transaction either holds a pin on the generation that
//             owns its bytes, or is detached from the file. Either is done while the writer lock is
//             held: no other writer can use the bytes before
//   change.5  no lock that a chunk operation takes is held while a parallel loop runs: otherwise
//             the loop could need the very threads that wait for that lock
//   change.6  a call from inside a write (a progress sink, a tile source) never waits for that
//             write: commit throws, and abort only asks for the end, which the write then completes.
//             So a thread that waits for writes lets go of `changes_lock_`: a call from inside one of
//             them takes it, and finds that the transaction has ended. Of commit and replace_by only
//             one gets that far, because they close `writes_` under the lock. abort may overtake it:
//             it sets `abort_asked_` first, which the other finds when it has the lock again
//   change.7  while a shape changes, no handle to the old shape stores a chunk, and no other call
//             changes the array's shape or name. A change that fails leaves the old shape and the old
//             elements, or a transaction that refuses to commit
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "array/elements/chunk_tiles.hpp"
#include "array/transaction/operation_gate.hpp"
#include "array/transaction/reader_file.hpp"
#include "array/transaction/written_array.hpp"
#include "format/generations/generation_view.hpp"
#include "format/transaction/transaction.hpp"
#include "parallel/executor/call_scope.hpp"
#include "shale/layout.hpp"
#include "shale/storage.hpp"

namespace shale::arrays {

class shared_transaction : public std::enable_shared_from_this<shared_transaction> {
 public:
  shared_transaction(std::shared_ptr<reader_file> readers, format::transaction inner,
                     format::generation_view base);
  ~shared_transaction();

  std::uint64_t generation() const noexcept { return generation_; }
  const std::string& path() const noexcept { return readers_->path(); }
  std::string label(std::string_view name) const;

  /// Adds an array, and reserves its space on the device.
  std::shared_ptr<written_array> create(format::array_record record);
  std::shared_ptr<written_array> update(std::string_view name);

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

  /// Makes `commit` refuse, because a change was made in part and could not be undone.
  void refuse_commit() noexcept;

  /// Called when a mapping of the array lost bytes. Makes `commit` refuse, unless the array was
  /// removed: its mappings are separated from the file then.
  void note_lost_bytes(const written_array& array) noexcept;

  /// Gives an array another shape; earlier handles to it end (change.7).
  std::shared_ptr<written_array> resize(std::string_view name, const dims& shape);

  void remove(std::string_view name);

  /// Removes an array that `create` made and that could not be filled, under its present name. If it
  /// was removed already, its name may be another array's: this does nothing then. If it cannot be
  /// removed, `commit` refuses.
  void discard(const written_array& made) noexcept;

  void rename(std::string_view from, std::string_view to);
  void set_attribute(std::string_view array, std::string_view key, std::string_view value);
  void remove_attribute(std::string_view array, std::string_view key);

  /// Marks a write of many chunks or of a mapping's bytes while it lives. Either the commit
  /// contains the whole write, or the write throws.
  class [[nodiscard]] running_write {
   public:
    explicit running_write(shared_transaction& transaction) noexcept
        : of_(transaction),
          visit_(std::in_place, transaction.writes_),
          scope_(std::in_place, &transaction) {}
    ~running_write() {
      scope_.reset();
      visit_.reset();
      if (of_.abort_asked_ && !parallel::call_scope::inside(&of_)) of_.abort();
    }
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

  std::uint64_t commit();
  void replace_by(const std::string& other);
  void abort() noexcept;
  std::uint64_t metadata_bytes_written() const noexcept;

  /// The array's chunks as tiles that are only read.
  std::shared_ptr<const chunk_tiles> read_only_tiles_of(
      const std::shared_ptr<written_array>& array);

 private:
  friend class transaction_chunks;
  friend class staged_chunks;
  friend class shape_change;
  friend class running_append;
  friend class unit_copies;
  friend class dense_writer;
  friend class dense_resize;

  bool is_of_this_process() const noexcept { return ::getpid() == process_; }
  std::unique_lock<std::mutex> lock(std::mutex& mutex) const;
  void require_active(const operation_gate& gate) const;
  void require_active() const { require_active(writes_); }
  void require_outside_of_writes(const char* advice) const;
  void require_chunks(const written_array& array) const;
  void require_shape_at_rest(std::string_view name) const;
  [[noreturn]] void throw_no_array(std::string_view name) const;
  static std::shared_ptr<written_array> updated(format::array_record record);
  void enlist(const std::shared_ptr<written_array>& array);
  void give_back(const format::dense_layout& unused) noexcept;
  void erase(std::string_view name);
  void checksum(written_array& array);
  void check_mappings() const;
  void keep_mappings() noexcept;
  void detach_mappings() noexcept;
  void close(operation_gate& gate) noexcept;
  void end_operations() noexcept;
  bool goes_on() const noexcept;
  void publish();
  void end() noexcept;

  const std::shared_ptr<reader_file> readers_;
  const std::uint64_t generation_;
  const pid_t process_ = ::getpid();

  // `changes_lock_` serialises calls that add, remove or rename arrays, and the end of the
  // transaction. It is locked before `state_lock_`. No thread waits for writes while it holds it.
  mutable std::mutex changes_lock_;
  // Guards inner_, base_, written_, changing_shape_ and the members of written arrays.
  mutable std::mutex state_lock_;
  operation_gate writes_;  // closed when the transaction ends
  // Set by abort, so that running writes throw. If a write called abort, its end completes it.
  std::atomic<bool> abort_asked_ = false;
  mutable operation_gate chunks_;  // single operations on chunks; closed after writes_
  std::optional<format::transaction> inner_;
  std::optional<format::generation_view> base_;
  std::map<std::string, std::shared_ptr<written_array>, std::less<>> written_;
  std::set<std::string, std::less<>> changing_shape_;  // the names of arrays
  std::uint64_t metadata_bytes_ = 0;
};

}  // namespace shale::arrays
