// Reads and writes NumPy's .npy files, versions 1.0 to 3.0. Elements are mapped if their bytes
// allow it, and converted otherwise. docs/foreign-formats.md lists what is mapped, copied and
// refused.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/existing_file.hpp"
#include "shale/logical_dtype.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The header of an .npy file. Times and texts are described as the integers that store them: times
/// as int64, texts as uint8 or uint32 with an additional last axis for their characters.
struct npy_header {
  shale::dtype dtype = shale::dtype::float32;
  std::endian byte_order = std::endian::little;

  /// True: Fortran order (the first axis is the fastest). The characters of a text lie one after
  /// the other in any case.
  bool fortran_order = false;
  dims shape = {};

  /// Format version: 1, 2 or 3.
  int version = 1;

  /// Bytes before the first element. `format_npy_header` ignores it.
  std::size_t data_offset = 0;

  /// What the integers stand for: NumPy's `<M8[ns]`, `<m8[s]`, `|S10`, `<U5`.
  std::optional<logical_dtype> logical = std::nullopt;

  /// The bytes of all elements, which follow the header.
  /// Throws   invalid_argument (negative extents, more bytes than 64 bits can count)
  std::uint64_t data_bytes() const;

  /// The layout of the elements in the file, without gaps.
  /// Throws   invalid_argument (negative extents, too many elements)
  shale::layout layout() const;

  friend bool operator==(const npy_header&, const npy_header&) noexcept = default;
};

/// Parses the header at the start of `bytes`, which may be hostile: it reads only inside `bytes`,
/// and sizes in the input do not make it allocate memory.
/// Throws   corrupt (no magic bytes of NumPy, incomplete, not the dictionary that NumPy writes,
///          elements beyond 2^62 bytes); unsupported (a later version; dtypes that are structured,
///          objects, raw bytes or wider than those of Shale; rank above 32, or above 31 for texts;
///          a header above 64 KiB); out_of_memory
npy_header parse_npy_header(std::span<const std::byte> bytes);

/// The bytes of a header as NumPy writes them, padded so that elements begin at a multiple of 64,
/// with NumPy's spare room for a growing axis.
/// Throws   unsupported (bfloat16 and float8, for which NumPy has no code: convert to float32;
///          texts of 2^31 bytes or more), invalid_argument (no dtype; a logical dtype with another
///          storage than `dtype`, or without an axis of characters), out_of_memory
std::string format_npy_header(const npy_header& header);

/// The header that begins at byte `offset` of a file. Reads no element.
/// Throws   as parse_npy_header; not_found, access_denied, invalid_argument (no regular file,
///          `offset` after its end), io
npy_header inspect_npy(const std::string& path, std::uint64_t offset = 0);

/// The treatment of bytes after the last element.
enum class trailing_bytes : std::uint8_t {
  refuse,  ///< throw corrupt: a damaged header could describe a smaller array
  ignore,  ///< allow them, as in files into which several arrays were saved
};

/// Options of `read_npy`.
struct npy_read_options {
  /// With `read_write`, stores reach the file; the elements must allow mapping.
  shale::access access = access::read_only;

  /// The byte of the file at which the header begins.
  std::uint64_t offset = 0;

  trailing_bytes trailing = trailing_bytes::refuse;
};

/// The array of an .npy file. Times and texts are the integers that store them; `inspect_npy` tells
/// what these stand for.
/// Shape    as stored; strides express Fortran order. Texts have a last axis of their characters
/// Cost     O(1), reads no element, if the elements are little-endian and aligned in the file
///          (NumPy aligns them to 64 bytes). bool: one pass over the bytes. Otherwise a copy into
///          pool memory
/// Throws   as inspect_npy; corrupt (elements are missing, bytes after them, a bool that is
///          neither 0 nor 1), unsupported (`read_write` where a copy is needed), cancelled,
///          out_of_memory, io
/// Lifetime the tensor keeps the mapping. The file may be removed or replaced
tensor read_npy(const std::string& path, const npy_read_options& options = {});

/// Options of `write_npy` and `npy_writer`.
struct npy_write_options {
  existing_file existing = existing_file::replace;

  /// What the integers stand for. Texts lose their last axis in the file.
  std::optional<logical_dtype> logical = std::nullopt;
};

/// Writes `values` as version 1.0. The file has Fortran order if the elements are contiguous in
/// Fortran order but not in row-major order. Otherwise, and for texts, it is row-major. NumPy
/// follows the same rule, but for texts too.
/// Cost     one pass in pieces of 4 MiB. Pages of a mapped source larger than half of the budget
///          are released after use. If the source is larger than memory and its fastest axis is not
///          that of the file, every piece reads pages of the whole source: use npy_writer then
/// Throws   unsupported (dtype), already_exists, not_found (the folder), invalid_argument (as
///          format_npy_header and unfinished_file), out_of_space, access_denied, out_of_memory,
///          cancelled, io (also of the source)
void write_npy(const std::string& path, const tensor& values,
               const npy_write_options& options = {});

/// An .npy file whose elements are mapped for writing, so that engine calls write straight into it,
/// in any order.
/// Threads  several threads may write elements; all must be done before `finish`
/// Lifetime without `finish` no file appears under the name. The tensor may outlive the writer.
///          Stores after `finish` reach the file, but may be lost in a crash
class npy_writer {
 public:
  /// Makes the file under a temporary name beside `path`, and reserves its whole space.
  /// Throws   as write_npy; invalid_argument (the shape), unsupported (also where files cannot be
  ///          mapped for writing)
  npy_writer(const std::string& path, dtype type, const dims& shape,
             const npy_write_options& options = {});
  ~npy_writer();
  npy_writer(npy_writer&&) noexcept;
  npy_writer& operator=(npy_writer&&) noexcept;

  /// The elements of the file: a row-major tensor that can be written, and contains zeros at first.
  /// If the writer was moved from, the tensor has no elements. Errors of calls that use the
  /// elements name the temporary file, which is their storage's `path()`.
  const tensor& elements() const noexcept;

  /// Makes the elements durable and gives the file its name. Call it once.
  /// Throws   invalid_argument (a second call, or the writer was moved from), io (also if a store
  ///          was lost), and as unfinished_file::publish
  void finish();

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace shale
