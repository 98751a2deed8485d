// Takes the steps of the commit protocol (commit.hpp) for the one writer of a file, and holds what
// they need: the writer lock, the description for syncs, and the base generation.
//
// A writer usually makes one generation. It may also make several, one transaction after the other,
// and publish the newest of them from time to time (commit.10):
//
//   transaction                  writer                          publishing thread
//     commit_unpublished   -->     hand_over
//     begin_on_written     <--     adopt_written
//                                  publish_written        <--      beside the next transaction
//                                  end                    <--      no transaction goes on
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/bytes/generation_set.hpp"
#include "format/bytes/types.hpp"
#include "format/generations/shared_file.hpp"
#include "format/generations/superblock_slots.hpp"
#include "format/os/file_system.hpp"
#include "format/os/pins.hpp"
#include "format/pages/superblock.hpp"
#include "shale/error.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::format {

/// Threads  one thread at a time. But another one may call `publish_written` and
///          `unpublished_count` during a transaction, its beginning and its end
class writer {
 public:
  /// The writer of a file that is being created. The file has no name yet, so nobody else can open
  /// it, and no lock is needed. The base is generation 0, which is empty.
  explicit writer(std::shared_ptr<shared_file> created);

  /// The writer of `file`. `lock` is the description that holds the file's writer lock. `sync` is
  /// another description, which is used only for syncs (commit.6). The caller must call
  /// `adopt_newest` next.
  writer(std::shared_ptr<shared_file> file, std::unique_ptr<open_file> lock,
         std::unique_ptr<open_file> sync) noexcept;

  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;
  ~writer() = default;

  shared_file& file() const noexcept { return *file_; }
  const std::shared_ptr<shared_file>& file_owner() const noexcept { return file_; }

  /// The superblock of the base generation: the one that `adopt_newest` found, or the last one that
  /// was handed over.
  const superblock& base() const noexcept { return base_; }

  /// Bytes of superblocks written so far.
  std::uint64_t metadata_bytes() const noexcept { return metadata_bytes_; }

  /// commit.2: the generations that are pinned, in a valid superblock, or in `retained`.
  generation_set protected_generations(const std::vector<std::uint64_t>& retained) const;

  /// Whether this process is a forked child and the writer belongs to its parent.
  bool left_behind_by_fork() const noexcept { return lock_ && lock_->left_behind_by_fork(); }

  // ---- the steps, in their order ----------------------------------------------------------------

  /// commit.1 and commit.2: makes the newest generation the durable base, and scans the pins.
  /// Throws   io, busy, corrupt, unsupported
  void adopt_newest();

  /// Checks that no written bytes may be lost (commit.6), and that publishing has not failed.
  /// Throws   io, out_of_space if a write or sync has failed; if publishing an earlier generation
  ///          has failed (commit.10), the code of that error
  void check_written() const;

  /// commit.3: ensures that after the next sync the file is at least `end_of_file` bytes long.
  /// Throws   out_of_space, io
  void make_size_durable(std::uint64_t end_of_file) const;

  /// Syncs the data. A failure poisons the file object (commit.6). Throws io, out_of_space.
  void sync_data() const;

  /// commit.4 and commit.9: writes the superblock and makes it durable. The data of its generation
  /// must have been synced, and nobody else publishes.
  /// Throws   io (also if the file has become shorter than the generation), out_of_space
  void publish(const superblock& next);

  /// commit.5, commit.8 and commit.9: announces the durable generation, gives back the file's tail
  /// and releases the writer lock.
  /// Throws   io: the generation is durable, but the file was replaced (its name leads to another)
  void announce_and_release(const superblock& published);

  /// Ends without the steps from commit.3 on: gives back the file's tail, unless somebody has
  /// written over the file, and releases the writer lock. Does nothing if a generation was handed
  /// over: then `end` does it.
  void release() noexcept;

  /// Ends without the steps from commit.3 on: makes the container at `other` durable, gives it the
  /// file's name, and releases the writer lock. It holds the writer lock of `other` meanwhile. A
  /// process that waits for one of the two locks then finds that the name leads to another file,
  /// and opens that one.
  /// Returns  an error if the name is given, but could not be made durable
  /// Throws   invalid_argument, busy, corrupt, not_found, access_denied, unsupported, io,
  ///          out_of_space: the name is not given, and the writer lock is still held
  [[nodiscard]] std::optional<error> give_name_to(const std::string& other);

  // ---- several generations (commit.10) ----------------------------------------------------------

  /// Makes `written` the base. Its bytes are written, but need not be synced.
  /// Throws   as check_written
  void hand_over(const superblock& written);

  /// commit.2 for the next transaction, which begins on the base: notes the generations that are
  /// protected, then scans the pins.
  /// Throws   as check_written; busy (a lock of another program), io
  void adopt_written();

  /// Publishes the base, unless it is published: commit.3 from its sync on, commit.4 and commit.5.
  /// Keeps the writer lock. If it fails, this writer publishes nothing more, and its transactions
  /// fail. `after_sync` is called with the generation between the sync of the data and the write of
  /// the superblock; if it throws, publishing fails.
  /// Returns  the generation that is durable now
  /// Throws   as publish and announce_and_release; out_of_memory; exceptions of `after_sync`,
  ///          except that a std::bad_alloc becomes out_of_memory too
  std::uint64_t publish_written(const std::function<void(std::uint64_t)>& after_sync = {});

  /// How far the base is ahead of the newest generation that was published.
  std::uint64_t unpublished_count() const noexcept;

  /// Whether another writer waits for the writer lock.
  bool is_awaited() const noexcept;

  /// After the last transaction: gives back the file's tail, unless somebody reads a base that was
  /// not published, and releases the writer lock. Generations that are not published are lost.
  void end() noexcept;

 private:
  void require_length(const superblock& next) const;
  void write_superblock(const superblock& next);
  void note_published(const superblock& next);
  superblock choose_written();
  void note_failure(const error* failed) noexcept;
  bool is_lost_base_read() const noexcept;
  void give_back_tail(std::uint64_t end) noexcept;
  std::optional<error> replaced(const char* outcome) const;
  std::optional<error> overwritten() const;
  bool holds_its_bytes() const noexcept;

  std::shared_ptr<shared_file> file_;
  std::unique_ptr<open_file> lock_;  // holds the writer lock; null while a file is being created
  std::unique_ptr<open_file> sync_;  // null while a file is being created
  uuid mark_;                        // in the live page, from commit.1 on
  std::atomic<std::uint64_t> metadata_bytes_ = 0;

  // The generations that the transaction protects. Only the transaction uses these members.
  slots held_slots_;
  pin_scan pins_;

  // Guards the members below against a thread that publishes beside a transaction. That thread
  // alone changes `both_` and `chosen_`, and a transaction alone changes `base_`: each may read
  // without the lock what it alone changes.
  mutable shale::detail::fork_safe_mutex mutex_;
  slots both_;                // on the device: a slot is replaced here once that is durable
  superblock base_;           // written; published if that is the newest of `both_`
  std::uint64_t chosen_ = 0;  // the generation that is being published; 0: none
  bool continues_ = false;    // a generation was handed over
  bool publishing_failed_ = false;
  std::optional<error> publishing_error_{};  // why publishing failed, if a shale::error says it
};

}  // namespace shale::format
