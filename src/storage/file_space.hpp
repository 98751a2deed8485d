// Space on the device, reserved before anything stores into it, so that a full disk is an error of
// the call that asks and never a signal later.
#pragma once

#include <cstdint>
#include <string_view>

namespace shale::detail {

/// Grows the open file from `from` bytes, its size of late, to `to` bytes whose space is reserved,
/// or leaves it longer if another has grown it further. On failure the file keeps the size that it
/// has by then; only where space cannot be reserved (no fallocate) may zeros stay behind it.
/// Throws   out_of_space (full disk, quota, file size limit), io
void extend_file(int descriptor, std::uint64_t from, std::uint64_t to, std::string_view path);

/// The size of the open file. Throws io.
std::uint64_t file_bytes(int descriptor, std::string_view path);

}  // namespace shale::detail
