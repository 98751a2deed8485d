// Reads ZIP archives: the directory, and single members as streams. Knows nothing of .npy.
//
// Invariants
//   zip.1  the directory is the truth; a local header must agree with it, or the member is corrupt
//   zip.2  no two members share a byte, and none shares one with the directory
//   zip.3  memory follows bytes that the file really has: a size that is only declared allocates
//          nothing
//   zip.4  a stream gives exactly the declared size, or throws; `finish` has compared the CRC-32
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "interop/input_file.hpp"

namespace shale::interop {

struct zip_member {
  std::string name;  ///< UTF-8 if it says so or is ASCII, else whatever bytes were stored
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;  ///< once inflated
  std::uint64_t header_offset = 0;

  /// The first byte of the file that belongs to something else.
  std::uint64_t limit = 0;
};

/// The members of the directory.
/// Throws   corrupt, unsupported (several disks, a directory above 64 MiB), io
std::vector<zip_member> read_zip_directory(const input_file& file);

/// Where the stored bytes of a member begin.
/// Throws   corrupt (zip.1, zip.2), unsupported (encrypted, patched, other methods), io
std::uint64_t zip_data_offset(const input_file& file, const zip_member& member);

/// One member's bytes, from front to back.
class zip_stream {
 public:
  /// Throws   as zip_data_offset, and corrupt for a size that deflate cannot reach
  zip_stream(const input_file& file, const zip_member& member);
  ~zip_stream();
  zip_stream(const zip_stream&) = delete;
  zip_stream& operator=(const zip_stream&) = delete;

  /// Fills `into`, less at the end of the member. Returns how many bytes there were.
  /// Throws   corrupt, io, out_of_memory
  std::size_t read(std::span<std::byte> into);

  /// Throws   corrupt unless the member ended where it said and its CRC-32 agrees
  void finish();

 private:
  struct inflater;
  std::size_t read_stored(std::span<std::byte> into);
  std::size_t inflate_some(std::span<std::byte> into);

  const input_file& file_;
  const zip_member& member_;
  std::uint64_t at_;           // in the file: the next stored byte
  std::uint64_t stored_left_;  // stored bytes from there on
  std::uint64_t left_;         // bytes not handed out yet
  std::uint32_t crc32_ = 0;    // of those that were
  std::unique_ptr<inflater> inflater_;
};

/// zlib's CRC-32 over more bytes than its own interface takes.
std::uint32_t crc32_of(std::uint32_t before, std::span<const std::byte> bytes) noexcept;

/// Throws   corrupt unless they are equal
void require_crc32(const zip_member& member, std::uint32_t computed);

/// For messages: control bytes escaped, very long names cut.
std::string printable_name(std::string_view name);

/// Whether `text` is well-formed UTF-8 without a zero byte.
bool is_utf8_name(std::string_view text) noexcept;

}  // namespace shale::interop
