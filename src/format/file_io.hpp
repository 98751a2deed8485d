// The loops over the seam: whole transfers, or an `error` that names the file and the byte.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

#include "format/file_system.hpp"
#include "format/types.hpp"
#include "shale/error.hpp"

namespace shale::format {

/// Repeats a call of the seam for as long as it is interrupted.
template <class Call>
os_result uninterrupted(Call&& call) {
  for (;;) {
    const os_result result = call();
    if (result != -EINTR) return result;
  }
}

/// Fills `into` from `offset` on; goes on after interruptions and short reads.
/// Throws   io, also if the file ends before the range does
void read_exact(open_file& from, std::uint64_t offset, bytes_span into, const std::string& path);

/// Writes all of `bytes`; goes on after interruptions and short writes.
/// Throws   out_of_space, io
void write_all(open_file& to, std::uint64_t offset, bytes_view bytes, const std::string& path);

/// Throws   io. Never retried, not even after an interruption: the kernel reports the loss of a
///          page once, and an interrupted call may have taken that report.
void sync_data(open_file& file, const std::string& path);

/// Reserves space. Throws out_of_space, io.
void allocate_space(open_file& file, std::uint64_t offset, std::uint64_t bytes,
                    const std::string& path);

std::uint64_t size_bytes(open_file& file, const std::string& path);
file_identity identity_of(open_file& file, const std::string& path);

/// Which file the name leads to. Throws not_found, access_denied, io.
file_identity identity_of(file_system& files, const std::string& path);

/// A new description of the file. Throws not_found, access_denied, io.
std::unique_ptr<open_file> open_existing(file_system& files, const std::string& path,
                                         open_access access);

/// The same for writing, for the locks of a writer. Throws not_found, access_denied, io.
std::unique_ptr<open_file> open_unshared(file_system& files, const std::string& path);

/// The error for a failed call on `path`.
error failure(const char* doing, os_result result, const std::string& path);

}  // namespace shale::format
