// Reads ZIP archives: the directory, and single members as streams. It knows nothing about .npy.
//
// A ZIP archive ends with a directory, which lists the members, and an end record, which gives the
// directory's place. Each member also has a local header in front of its bytes. Large archives have
// a second end record and extra fields with 64-bit numbers (ZIP64).
//
// Invariants
//   zip.1  the directory is authoritative; a member whose local header contradicts it is corrupt
//   zip.2  no two members share a byte, and no member shares a byte with the directory
//   zip.3  memory is bounded by bytes that the file really has: no memory is allocated because of a
//          size that is only declared
//   zip.4  a stream delivers exactly the declared number of bytes, or throws; `finish` compares the
//          CRC-32
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
  std::string name;  ///< UTF-8 if the flag is set or all bytes are ASCII, else the stored bytes
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;  ///< after inflating
  std::uint64_t header_offset = 0;

  /// The offset in the file at which the next member or the directory begins.
  std::uint64_t limit = 0;
};

/// The members of the directory.
/// Throws   corrupt, unsupported (several disks, a directory above 64 MiB), io
std::vector<zip_member> read_zip_directory(const input_file& file);

/// The offset in the file of a member's stored bytes.
/// Throws   corrupt (zip.1, zip.2), unsupported (encrypted, patched, other methods), io
std::uint64_t zip_data_offset(const input_file& file, const zip_member& member);

/// Reads the bytes of one member from front to back.
class zip_stream {
 public:
  /// Throws   as zip_data_offset, and corrupt for a size that deflate cannot reach
  zip_stream(const input_file& file, const zip_member& member);
  ~zip_stream();
  zip_stream(const zip_stream&) = delete;
  zip_stream& operator=(const zip_stream&) = delete;

  /// Fills `into`, or a part of it at the end of the member. Returns the number of bytes.
  /// Throws   corrupt, io, out_of_memory
  std::size_t read(std::span<std::byte> into);

  /// Throws   corrupt unless the member ends at its declared size and its CRC-32 is right
  void finish();

 private:
  struct inflater;
  std::size_t read_stored(std::span<std::byte> into);
  std::size_t inflate_some(std::span<std::byte> into);

  const input_file& file_;
  const zip_member& member_;
  std::uint64_t at_;           // in the file: offset of the next stored byte
  std::uint64_t stored_left_;  // stored bytes from at_ on
  std::uint64_t left_;         // bytes not delivered yet
  std::uint32_t crc32_ = 0;    // of the delivered bytes
  std::unique_ptr<inflater> inflater_;
};

/// zlib's CRC-32 for any number of bytes; `before` is the CRC-32 of the bytes before them.
std::uint32_t crc32_of(std::uint32_t before, std::span<const std::byte> bytes) noexcept;

/// Throws   corrupt unless they are equal
void require_crc32(const zip_member& member, std::uint32_t computed);

/// Whether `text` is well-formed UTF-8 without a zero byte.
bool is_utf8_name(std::string_view text) noexcept;

}  // namespace shale::interop
