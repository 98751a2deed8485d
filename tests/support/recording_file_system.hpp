// Files in memory behind the format floor's seam, for tests of what goes wrong: records every
// change, fails the n-th call, runs something else before any call, and makes the images that a
// crash at any moment may leave.
//
// What it takes the world to be like
//   - The device writes sectors of 512 bytes, each whole or not at all, in any order.
//   - A successful sync makes everything durable that was written since the last failed one; a
//     failed one leaves each sector on the device or not, for ever (until written again).
//   - A name is durable after the directory's sync; before, it may be there or not.
//   - Locks belong to open files and go with them, as F_OFD_* locks do.
//   - Stores through mappings of descriptor() inside ranges that were noted are seen by reads at
//     once, and are recorded as differences of pages when the file is synced.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "format/file_system.hpp"

namespace shale::test {

class device;

/// What a chosen call does instead of succeeding.
enum class fault : std::uint8_t {
  none,
  error,        ///< answers -error_number and changes nothing
  interrupted,  ///< answers -EINTR once, and changes nothing
  partial,      ///< pread and pwrite move only a part; other calls succeed
  death,        ///< pwrite moves only a part; other calls, and all later ones, answer -EIO
};

class recording_file_system final : public format::file_system {
 public:
  using content = std::vector<std::byte>;
  using image = std::map<std::string, content>;  ///< files by name

  recording_file_system();
  ~recording_file_system() override;

  /// A file system that holds these files, all of it durable.
  explicit recording_file_system(const image& files);

  // ---- the seam
  // ----------------------------------------------------------------------------------

  format::os_result open(const std::string& path, format::open_access access,
                         std::unique_ptr<format::open_file>& opened) noexcept override;
  format::os_result create_unnamed(const std::string& path, unsigned mode,
                                   std::unique_ptr<format::open_file>& created) noexcept override;
  format::os_result link(format::open_file& file, const std::string& path) noexcept override;
  format::os_result rename(const std::string& from, const std::string& to) noexcept override;
  format::os_result remove(const std::string& path) noexcept override;
  format::os_result sync_directory_of(const std::string& path) noexcept override;
  format::os_result identify(const std::string& path,
                             format::file_identity& identity) noexcept override;
  void pause(std::chrono::milliseconds duration) noexcept override;

  // ---- faults and interleavings
  // --------------------------------------------------------------------

  /// Calls made so far, through this object and its open files.
  std::uint64_t calls() const noexcept { return calls_; }

  /// Call number `at` (counted as calls() does, from 0) goes wrong; and, if `lasting`, every later
  /// one that could.
  void fail_call(std::uint64_t at, fault how, int error_number = 0, bool lasting = false);

  /// The sync after `successes` more fails with EIO.
  void fail_sync(int successes) { good_syncs_ = successes; }

  /// Runs before every call (but not before calls that it makes itself).
  std::function<void()> before_call;

  /// The same, but before every call: for callers that hand each other turns between threads.
  std::function<void()> before_each_call;

  /// Whether locks of one description are seen by others; where not, every one is granted.
  bool honours_locks = true;

  /// Open files that exist now.
  int open_files() const noexcept { return open_files_; }

  /// What the call that went wrong was.
  const std::string& failed_call() const noexcept { return failed_call_; }

  // ---- what a crash leaves
  // -----------------------------------------------------------------------

  /// Changes recorded so far; a crash may come after any number of them.
  std::size_t changes() const noexcept { return log_.size(); }

  /// The states of the device after 0, 1, 2, … changes.
  class replay {
   public:
    explicit replay(const recording_file_system& of);
    ~replay();

    /// Changes applied so far.
    std::size_t count() const noexcept { return count_; }

    /// Applies one more; false at the end.
    bool next();

    /// The files if the process dies now: everything written is there.
    image after_kill() const;

    /// The files if the power goes now: what was not synced is there or not, as `random` decides
    /// sector by sector. Without `random`, none of it is.
    image after_power_cut(std::mt19937_64* random) const;

   private:
    friend class recording_file_system;
    const recording_file_system& of_;
    std::size_t count_ = 0;
    std::unique_ptr<device> device_;
  };

  /// As replay's, after all changes so far.
  image after_power_cut(std::mt19937_64* random) const;

  /// The files as everybody sees them now.
  image now() const;

  /// The kernel tries to write a file's unsynced bytes back unasked, and fails: as if a sync had
  /// failed, but nobody hears of it before the next one.
  void fail_writeback(const std::string& path);

  /// The kernel drops what it could not write: what failed syncs left uncertain is read back from
  /// the device, where none of it is. Recorded.
  void evict_lost();

  /// Changes one byte of a file, unrecorded.
  void flip(const std::string& path, std::uint64_t offset, std::byte mask);

  /// How many changes had been recorded when each sync of the file ended, and whether it worked.
  struct sync_mark {
    std::size_t changes = 0;
    bool worked = false;
  };
  const std::vector<sync_mark>& syncs() const noexcept { return syncs_; }

  /// How many changes had been recorded whenever waiters were woken.
  const std::vector<std::size_t>& wakes() const noexcept { return wakes_; }

  struct inode;

  /// One recorded change.
  struct event {
    enum class change : std::uint8_t {
      write,
      resize,  ///< `offset` is the new size
      sync,
      failed_sync,
      evict,  ///< of all files
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
  };

 private:
  friend class recorded_file;

  std::optional<format::os_result> begin_call(const char* what, bool can_fail = true);
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
  std::optional<std::uint64_t> fault_at_;
  fault fault_ = fault::none;
  int error_number_ = 0;
  bool lasting_ = false;
  std::optional<int> good_syncs_;
  bool partial_now_ = false;
  bool inside_hook_ = false;
  std::string failed_call_;
};

}  // namespace shale::test
