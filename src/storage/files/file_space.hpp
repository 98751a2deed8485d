// Reserves space on the device before anything is stored there, so that a full disk is an error of
// this call and never a signal later.
#pragma once

#include <cstdint>
#include <string_view>

namespace shale::detail {

/// Grows the open file from `from` bytes, its last known size, to `to` bytes and reserves their
/// space. If another process has grown the file further, it stays longer. On failure the size does
/// not change; only if the file system cannot reserve space (no fallocate), zeros may be left
/// after the old end.
/// Throws   out_of_space (full disk, quota, file size limit), io
void extend_file(int descriptor, std::uint64_t from, std::uint64_t to, std::string_view path);

/// Whether the device has less free space than a reservation of `from` to `to` needs. Space that it
/// keeps for some users counts as free. In doubt the answer is no. A failed reservation takes all
/// free space, and some file systems do not give it back, so a reservation that cannot succeed is
/// not tried.
bool is_surely_full(int descriptor, std::uint64_t from, std::uint64_t to) noexcept;

/// Whether bytes `from` to `to` of the file can be overwritten without more space on the device:
/// each has a block that belongs to this file alone. In doubt the answer is no: the file system does
/// not tell, or copies what is changed (btrfs, bcachefs); the bytes lie in more than 32 pieces of the
/// device; or the limit of a file's size (`ulimit -f`) lies before `to`.
bool has_space(int descriptor, std::uint64_t from, std::uint64_t to) noexcept;

/// The size of the open file. Throws io.
std::uint64_t file_bytes(int descriptor, std::string_view path);

}  // namespace shale::detail
