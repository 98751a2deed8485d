// Reads and writes NumPy's .npz archives: ZIP files with .npy members. docs/foreign-formats.md
// lists what is mapped, decompressed and refused.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shale/existing_file.hpp"
#include "shale/logical_dtype.hpp"
#include "shale/npy.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The compression of a member.
enum class npz_compression : std::uint8_t {
  stored,   ///< none, so that the member can be mapped
  deflate,  ///< zlib's; the member is decompressed into memory
};

/// The members whose CRC-32 is compared with their bytes.
enum class npz_checksum : std::uint8_t {
  copied,  ///< those that are copied into memory, but not those that are mapped
  always,  ///< all; a mapped member is read once for it
};

/// Options of `npz_file::read`.
struct npz_read_options {
  /// `read_only` or `copy_on_write`. Members cannot be changed in place.
  shale::access access = access::read_only;
  npz_checksum checksum = npz_checksum::copied;
};

/// The description of a member.
struct npz_member {
  std::string name;  ///< without ".npy", as in NumPy
  npz_compression compression = npz_compression::stored;
  std::uint64_t stored_bytes = 0;  ///< its size in the archive
  npy_header header;               ///< data_offset counts from the start of the member
};

/// An open archive.
/// Throws   invalid_argument from every member function, if it was moved from; out_of_memory
/// Threads  every member function may be called from any thread
/// Lifetime tensors from it stay valid after it was destroyed
class npz_file {
 public:
  /// Opens an archive. It reads the directory of the archive, but no member.
  /// Throws   corrupt (not a ZIP archive, members that overlap or lie outside, a name that occurs
  ///          twice), unsupported (several disks), not_found, access_denied, invalid_argument (no
  ///          regular file), out_of_memory, io
  static npz_file open(const std::string& path);

  /// The names of the members in the order of the archive. They are without ".npy", as in NumPy,
  /// unless the archive also has a member with the shorter name.
  const std::vector<std::string>& names() const;

  /// Whether there is a member of that name, or of that name with ".npy".
  bool contains(std::string_view name) const;

  /// The description of a member. It reads the member's header.
  /// Throws   as read
  npz_member inspect(std::string_view name) const;

  /// A member as a tensor. Times and texts are integers, as with read_npy; the header that
  /// `inspect` returns tells what these stand for.
  /// Cost     O(1) by mapping, if the member is stored, little-endian and aligned (bool: one pass).
  ///          Otherwise decompressed or copied into pool memory
  /// Throws   not_found; corrupt (checksum, sizes that contradict each other, and as read_npy);
  ///          unsupported (encrypted, other compressions, members that are not .npy, and as
  ///          read_npy); invalid_argument (`read_write`); cancelled; out_of_memory; io
  tensor read(std::string_view name, const npz_read_options& options = {}) const;

 private:
  struct implementation;
  explicit npz_file(std::shared_ptr<const implementation> opened) noexcept;
  const implementation& state() const;
  std::shared_ptr<const implementation> implementation_;
};

/// Options of `write_npz`.
struct npz_write_options {
  npz_compression compression = npz_compression::stored;

  /// zlib's level, 1 to 9.
  int level = 6;

  existing_file existing = existing_file::replace;
};

/// Writes an archive that np.load reads. The elements of stored members begin at multiples of 64
/// bytes, so that they can be mapped. Sizes beyond 4 GiB have the ZIP64 form.
/// Cost     one pass in pieces of 4 MiB, with CRC-32 and deflate by one thread
/// Throws   invalid_argument (a name that is empty, occurs twice, is another name with ".npy", is
///          not UTF-8, has a zero byte or is longer than 65,000 bytes; the level), and as
///          write_npy. The names are checked before anything is written
void write_npz(const std::string& path, std::span<const std::pair<std::string, tensor>> members,
               const npz_write_options& options = {});

/// An archive that is written member by member, so that the members need not exist together.
/// Threads  one at a time
/// Lifetime without `finish` no file appears under the name
class npz_writer {
 public:
  /// Makes the file under a temporary name beside `path`.
  /// Throws   invalid_argument (the level), and as unfinished_file
  explicit npz_writer(const std::string& path, const npz_write_options& options = {});
  ~npz_writer();
  npz_writer(npz_writer&&) noexcept;
  npz_writer& operator=(npz_writer&&) noexcept;

  /// Writes one more member, in the form and at the cost of `write_npz`. After a failure the
  /// archive cannot be finished; a name that is refused changes nothing. `logical` is what the
  /// integers stand for, as in npy_write_options.
  /// Throws   invalid_argument (the name; `finish` was called, a member has failed, or the writer
  ///          was moved from), and as write_npy
  void add(std::string_view name, const tensor& values,
           const std::optional<logical_dtype>& logical = std::nullopt);

  /// Writes the directory of the archive, makes the file durable and gives it its name. Call it
  /// once.
  /// Throws   invalid_argument (a second call, a member has failed, or the writer was moved from),
  ///          and as unfinished_file::publish
  void finish();

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace shale
