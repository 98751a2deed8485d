// A file without a name, for elements that do not fit in memory.
//
// Invariants
//   scratch.1  the file has no name, so its space is free again when the last descriptor and the
//              last mapping are gone, also if the process is killed
//   scratch.2  `check` reports every failure of the system to write bytes to the device, and so
//              does `check` of the mapping. Callers rely on bytes that they have read only after
//              such a check
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shale/storage.hpp"
#include "storage/files/file_descriptor.hpp"

namespace shale::detail {

/// The folder that TMPDIR names; without it, /var/tmp. (/tmp often lies in memory.)
std::string scratch_folder();

/// Threads  `read` may be called by several threads at once, `write` for ranges that do not overlap
class scratch_file {
 public:
  /// Makes an empty file in the folder. It will become `bytes` long, but no space is reserved.
  /// Throws   out_of_space (also if the device surely has less space than that), not_found,
  ///          access_denied, unsupported (a file system on which files cannot be mapped for
  ///          writing), io
  explicit scratch_file(std::uint64_t bytes, const std::string& folder = scratch_folder());

  /// Writes the bytes to the page cache, and makes the file longer if necessary.
  /// Throws   out_of_space (full disk, quota, `ulimit -f`), io
  void write(std::span<const std::byte> bytes, std::uint64_t offset);

  /// Reads bytes that were written.
  /// Throws   io
  void read(std::span<std::byte> into, std::uint64_t offset) const;

  /// Throws   io, out_of_space if the system has failed to write bytes of the file to the device
  /// Cost     one system call
  void check() const;

  /// The first bytes of the file, which were written, mapped for reading and writing.
  /// Throws   as `check`; out_of_memory (also for lack of address space), io
  /// Lifetime the mapping may outlive this object
  storage map(std::size_t bytes) const;

 private:
  [[noreturn]] void throw_failed(const char* message, int failure, std::uint64_t offset) const;

  std::string folder_;
  file_descriptor file_;
};

}  // namespace shale::detail
