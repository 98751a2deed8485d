// An in-memory file system under the interface of the format floor, for tests of failures. It
// records every change, can make the n-th call fail, can run a function before any call, and makes
// the images that a crash at any moment may leave.
//
// Assumptions about the system
//   - The device writes sectors of 512 bytes, each whole or not at all, in any order.
//   - A successful sync makes everything durable that was written since the last failed one; after
//     a failed one, each unsynced sector is on the device or not, permanently (until it is written
//     again). A sector that never was on the device before stays so even when it is written again,
//     unless its page left the cache in between: ext4 remembers the blocks of such pages as in use.
//   - A name is durable after the sync of the directory; before, it may exist after a crash or not.
//   - Locks belong to open files and end with them, like F_OFD_* locks.
//   - Stores through mappings of descriptor() inside noted ranges are visible to reads at once.
//     They are recorded when the file is synced, as writes of whole system pages with all bytes of
//     these pages.
#pragma once

#include <climits>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "format/os/file_system.hpp"

namespace shale::test {

class device;

/// The behaviour of a chosen call.
enum class fault : std::uint8_t {
  none,
  error,        ///< returns -error_number and changes nothing
  interrupted,  ///< returns -EINTR once, and changes nothing
  partial,      ///< pread and pwrite transfer only a part; other calls succeed
  death,        ///< pwrite transfers only a part; other calls, and all later ones, return -EIO
};

class recording_file_system final : public format::file_system {
 public:
  using content = std::vector<std::byte>;
  using image = std::map<std::string, content>;  ///< files by name

  recording_file_system();
  ~recording_file_system() override;

  /// A file system with these files, all of them durable.
  explicit recording_file_system(const image& files);

  // ---- the interface ---------------------------------------------------------------------------

  format::os_result open(const std::string& path, format::open_access access,
                         std::unique_ptr<format::open_file>& opened) noexcept override;
  format::os_result create_unnamed(const std::string& path, unsigned mode,
                                   std::unique_ptr<format::open_file>& created) noexcept override;
  format::os_result link(format::open_file& file, const std::string& path) noexcept override;
  format::os_result rename(const std::string& from, const std::string& to) noexcept override;
  format::os_result remove(const std::string& path) noexcept override;
  format::os_result open_directory_of(
      const std::string& path, std::unique_ptr<format::open_directory>& opened) noexcept override;
  format::os_result identify(const std::string& path,
                             format::file_identity& identity) noexcept override;
  std::chrono::microseconds pause(std::chrono::milliseconds duration) noexcept override;

  // ---- faults and interleavings ----------------------------------------------------------------

  /// The number of calls so far, through this object and its open files.
  std::uint64_t calls() const noexcept { return calls_; }

  /// The number of calls of that name, as open_file names it ("sync" stands for sync_data).
  std::uint64_t calls_of(const std::string& name) const {
    const auto found = calls_by_name_.find(name);
    return found != calls_by_name_.end() ? found->second : 0;
  }

  /// Call number `number` (counted from 0, as calls() does) fails; if `lasting`, every later call
  /// that can fail does too.
  void fail_call(std::uint64_t number, fault how, int error_number = 0, bool lasting = false);

  /// The sync after `successes` more fails with EIO.
  void fail_sync(int successes) { good_syncs_ = successes; }

  /// Runs before every call (but not before calls that it makes itself).
  std::function<void()> before_call;

  /// Like this, but before every call; for callers that pass turns between threads.
  std::function<void()> before_each_call;

  /// Whether several threads use the files at the same time. Then hooks must not wait for a thread.
  bool used_by_threads = false;

  /// Whether locks of one description exclude others; if not, every lock is granted.
  bool honours_locks = true;

  /// Whether other hosts may have the files open.
  bool remote = false;

  /// Whether it is known that files have space for all of their bytes.
  bool tells_space = true;

  /// Whether pages leave the cache when they are dropped; and how many ranges were dropped.
  bool drops_pages = true;
  std::uint64_t drops = 0;

  /// How many times longer pauses take than is asked for, as on a busy machine.
  int pauses_take = 1;

  /// The time that all pauses took. No pause really waits.
  std::chrono::microseconds paused{0};

  /// Adds a lock of a program that knows nothing about containers, over any range.
  void lock_as_stranger(const std::string& path, const format::found_lock& lock);
  void unlock_strangers(const std::string& path);

  /// Limits the number of open files and directories; further opens fail with EMFILE.
  int open_files_max = INT_MAX;

  /// The number of files and directories that are open now.
  int open_files() const noexcept { return open_files_; }

  /// The name of the call that failed.
  const std::string& failed_call() const noexcept { return failed_call_; }

  // ---- images after a crash --------------------------------------------------------------------

  /// The number of recorded changes; a crash may come after any number of them.
  std::size_t changes() const noexcept {
    const auto entered = enter();
    return log_.size();
  }

  /// The states of the device after 0, 1, 2, … changes.
  class replay {
   public:
    explicit replay(const recording_file_system& recorded);
    ~replay();

    /// The number of changes that were applied.
    std::size_t count() const noexcept { return count_; }

    /// Applies one more change; false at the end.
    bool next();

    /// The files if the process dies now: everything that was written is there.
    image after_kill() const;

    /// The files if the power fails now: `random` decides for each unsynced sector whether it is
    /// there. Without `random`, no unsynced sector is there.
    image after_power_cut(std::mt19937_64* random) const;

   private:
    friend class recording_file_system;
    const recording_file_system& recorded_;
    std::size_t count_ = 0;
    std::unique_ptr<device> device_;
  };

  /// Like those of replay, after all changes so far.
  image after_power_cut(std::mt19937_64* random) const;

  /// The files as all processes see them now.
  image now() const;

  /// Simulates that the kernel writes back unsynced bytes by itself and fails: like a failed sync,
  /// but the error is reported by the next sync through each description that is open now.
  void fail_writeback(const std::string& path);

  /// Simulates that the kernel evicts pages that it could not write: sectors that failed syncs left
  /// uncertain are read back from the device, where none of them is. This is recorded.
  void evict_lost();

  /// Changes one byte of a file without recording it.
  void flip(const std::string& path, std::uint64_t offset, std::byte mask);

  /// For each sync of the file: the number of recorded changes when it ended, and whether it
  /// succeeded.
  struct sync_mark {
    std::size_t changes = 0;
    bool worked = false;
  };
  const std::vector<sync_mark>& syncs() const noexcept { return syncs_; }

  /// The numbers of recorded changes at which waiters were woken.
  const std::vector<std::size_t>& wakes() const noexcept { return wakes_; }

  struct inode;

  /// One recorded change.
  struct event {
    enum class change : std::uint8_t {
      write,
      resize,  ///< `offset` is the new size
      sync,
      failed_sync,
      forget,  ///< `length` bytes leave the cache, if they need not be written
      evict,   ///< of all files, and only what cannot be written
      link,
      rename,
      remove,
      sync_names
    };
    change kind;
    std::uint64_t inode = 0;
    std::uint64_t offset = 0;
    content bytes;
    std::string name;
    std::string other_name;
    std::uint64_t length = 0;
  };

 private:
  friend class recorded_directory;
  friend class recorded_file;

  // One call after the other, where several threads make them.
  std::unique_lock<std::recursive_mutex> enter() const {
    return used_by_threads ? std::unique_lock(calling_) : std::unique_lock<std::recursive_mutex>();
  }
  std::optional<format::os_result> begin_call(const char* name, bool can_fail = true);
  bool is_partial() const noexcept { return partial_now_; }
  void record(event&& happened);
  std::shared_ptr<inode> find(const std::string& path) const;

  std::map<std::string, std::shared_ptr<inode>> names_;
  std::vector<std::shared_ptr<inode>> inodes_;
  std::vector<event> log_;
  std::vector<sync_mark> syncs_;
  std::vector<std::size_t> wakes_;
  int open_files_ = 0;
  std::uint64_t calls_ = 0;
  std::map<std::string, std::uint64_t> calls_by_name_;
  std::optional<std::uint64_t> fault_at_;
  fault fault_ = fault::none;
  int error_number_ = 0;
  bool lasting_ = false;
  std::optional<int> good_syncs_;
  bool partial_now_ = false;
  bool inside_hook_ = false;
  std::string failed_call_;
  mutable std::recursive_mutex calling_;
};

}  // namespace shale::test
