// Remembers that the system failed to write bytes of a file to its device.
//
// The kernel reports a write-back error once to each open file description, and some file systems
// report it to one call alone. After the report the kernel may drop the pages, and every later sync
// succeeds although bytes are lost. So code that receives the report stores it here, where all
// other users of the file in this process find it.
//
// Invariants
//   record.1  a report reaches every living record of the same file, through whichever description,
//             handle or thread it was received
//   record.2  a record that has failed stays failed; a record that is made later starts without an
//             error
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

namespace shale::detail {

/// One report of the system.
struct write_back_error {
  int error_number = 0;
  std::uint64_t offset = 0;  ///< of the range that should have been written
  std::uint64_t bytes = 0;   ///< 0: the position is unknown
};

/// Asks the system whether it has failed to write any bytes of the open file to the device. The
/// system reports a failure once to each open file description.
/// Returns  0, or the error number
/// Cost     one system call, which waits if the first page of the file is being written
int unreported_write_back_error(int descriptor) noexcept;

/// The write-back state for one user of a file (a writable mapping, or a container opened for
/// writing).
/// Threads  every member may be called from any thread
class write_back_record {
 public:
  /// A record without errors for the descriptor's file. A record that is made without a
  /// descriptor (-1) receives only reports through itself.
  static std::shared_ptr<write_back_record> of(int descriptor);

  ~write_back_record();
  write_back_record(const write_back_record&) = delete;
  write_back_record& operator=(const write_back_record&) = delete;

  /// Stores the error in this record and in all others of the same file. A record that already has
  /// an error keeps it.
  void report(const write_back_error& error) noexcept;

  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  /// Throws   as throw_error if there was a report
  void check(const std::string& path) const {
    if (failed()) throw_error(path);
  }

  /// Throws   io or out_of_space with the first report; there must be one
  [[noreturn]] void throw_error(const std::string& path) const;

 private:
  write_back_record() = default;
  void store(const write_back_error& error) noexcept;

  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  bool listed_ = false;
  write_back_record* next_ = nullptr;
  write_back_record* previous_ = nullptr;
  write_back_error first_;  // set once, before failed_
  std::atomic<bool> failed_ = false;
};

}  // namespace shale::detail
