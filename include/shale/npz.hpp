// NumPy's .npz archives: a ZIP file of .npy members. docs/formats.md says what is mapped, what is
// inflated and what is refused.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shale/npy.hpp"

namespace [[gnu::visibility("default")]] shale {

/// How a member lies in the archive.
enum class npz_compression : std::uint8_t {
  stored,   ///< as it is: can be mapped
  deflate,  ///< compressed by zlib: always inflated into memory
};

/// When a member's CRC-32 is compared with its bytes.
enum class npz_checksum : std::uint8_t {
  copied,  ///< whenever the bytes are read anyway: always, but for members that are mapped
  always,  ///< also for mapped members, by a pass over their bytes
};

/// How `npz_file::read` maps and checks.
struct npz_read_options {
  /// `read_only` or `copy_on_write`: members are not changed in place.
  shale::access access = access::read_only;
  npz_checksum checksum = npz_checksum::copied;
};

/// What the archive says about one member.
struct npz_member {
  std::string name;  ///< as NumPy shows it: without ".npy"
  npz_compression compression = npz_compression::stored;
  std::uint64_t stored_bytes = 0;  ///< in the archive
  npy_header header;               ///< data_offset counts from the start of the member
};

/// An open archive.
/// Threads  every member function may be called from any thread
/// Lifetime tensors keep what they need; the archive may go first
class npz_file {
 public:
  /// Reads the directory of the archive, no member.
  /// Throws   corrupt (not a ZIP archive, members that overlap or lie outside, names twice),
  ///          unsupported (several disks), not_found, access_denied, io
  static npz_file open(const std::string& path);

  /// The members in the archive's order, without ".npy" as NumPy shows them; with it where both
  /// forms are there.
  const std::vector<std::string>& names() const noexcept;

  /// Whether `read` would find it; ".npy" may be left out.
  bool contains(std::string_view name) const;

  /// Throws   as read
  npz_member inspect(std::string_view name) const;

  /// One member as a tensor.
  /// Cost     stored, little-endian and aligned: O(1), mapped (bool: one pass). Else inflated or
  ///          copied into pool memory, which grows no faster than the archive can account for
  /// Throws   not_found; corrupt (checksum, sizes that contradict each other, and as read_npy);
  ///          unsupported (encrypted, other compressions, members that are not .npy, and as
  ///          read_npy); invalid_argument (`read_write`); out_of_memory; io
  tensor read(std::string_view name, const npz_read_options& options = {}) const;

 private:
  struct implementation;
  explicit npz_file(std::shared_ptr<const implementation> opened) noexcept;
  std::shared_ptr<const implementation> implementation_;
};

/// How `write_npz` stores its members.
struct npz_write_options {
  npz_compression compression = npz_compression::stored;

  /// zlib's level, 1 to 9.
  int level = 6;

  /// As in `npy_write_options`.
  existing_file existing = existing_file::replace;
  executor* on = nullptr;
};

/// Writes an archive that np.load reads. Stored members start at multiples of 64 bytes, so that
/// they can be mapped; sizes beyond 4 GiB take the ZIP64 form.
/// Cost     one pass in pieces of 4 MiB, plus CRC-32 and deflate on one thread
/// Throws   invalid_argument (a name that is empty, there twice, not UTF-8, with a zero byte or
///          above 65,000 bytes; level), and as write_npy
void write_npz(const std::string& path, std::span<const std::pair<std::string, tensor>> members,
               const npz_write_options& options = {});

}  // namespace shale
