// Calls of file_system.hpp that either do all that was asked, or throw an `error` that names the
// file and the byte.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

#include "format/bytes/types.hpp"
#include "format/os/bound_path.hpp"
#include "format/os/file_system.hpp"
#include "shale/error.hpp"

namespace shale::format {

/// Repeats a call of file_system.hpp while it answers -EINTR. The number of attempts is bounded:
/// some file systems make no progress when a signal interrupts them, and a timer may interrupt
/// every attempt.
template <class Call>
os_result uninterrupted(Call&& call) {
  constexpr int attempts_max = 10'000;
  for (int attempt = 1;; ++attempt) {
    const os_result result = call();
    if (result != -EINTR || attempt == attempts_max) return result;
  }
}

/// Fills `into` from `offset` on; goes on after interruptions, as `uninterrupted`, and short reads.
/// Throws   io, also if the file ends before the range does
void read_exact(open_file& file, std::uint64_t offset, bytes_span into, const std::string& path);

/// Writes all of `bytes`; goes on after interruptions and short writes.
/// Throws   out_of_space, io
void write_all(open_file& to, std::uint64_t offset, bytes_view bytes, const std::string& path);

/// The error for a failed sync. A sync is never repeated, not even after an interruption: the
/// kernel reports the loss of a page once, and an interrupted call may have consumed that report.
error sync_failure(os_result result, const std::string& path);

/// Reserves space. Throws out_of_space, io.
void allocate_space(open_file& file, std::uint64_t offset, std::uint64_t bytes,
                    const std::string& path);

std::uint64_t size_bytes(open_file& file, const std::string& path);
file_identity identity_of(open_file& file, const std::string& path);

/// Identifies the file that the name leads to. Throws not_found, access_denied, io.
file_identity identity_of(const bound_path& place);

/// A new description of the file. Throws not_found, access_denied, io.
std::unique_ptr<open_file> open_existing(const bound_path& place, open_access access);

/// A new description for writing, which takes the locks of a writer. Throws not_found,
/// access_denied, io.
std::unique_ptr<open_file> open_unshared(const bound_path& place);

/// Opens the directory of the name. Throws not_found, access_denied, io.
std::unique_ptr<open_directory> open_directory_of(const bound_path& place);

/// The error for a failed call on the file or its name, once the file is open.
error failure(const char* operation, os_result result, const std::string& path);

/// The error if a file cannot be opened or made. If the file system is read-only, the code is
/// access_denied; that of `failure` is io.
error opening_failure(const char* operation, os_result result, const std::string& path);

}  // namespace shale::format
