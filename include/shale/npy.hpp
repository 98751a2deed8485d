// NumPy's .npy files, versions 1.0 to 3.0: mapped where the bytes allow it, converted otherwise.
// docs/formats.md says what is mapped, what is copied and what is refused.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/foreign_file.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

class executor;

/// What the first bytes of an .npy file say about the rest.
struct npy_header {
  shale::dtype dtype = shale::dtype::float32;
  std::endian byte_order = std::endian::little;

  /// The first axis is the one whose neighbours lie next to each other.
  bool fortran_order = false;
  dims shape = {};

  /// Format version: 1, 2 or 3.
  int version = 1;

  /// Bytes before the first element; `format_npy_header` finds it out by itself.
  std::size_t data_offset = 0;

  /// Elements times their width: what follows the header.
  std::uint64_t data_bytes() const noexcept;

  /// Dense strides in the stored order.
  layout geometry() const;

  friend bool operator==(const npy_header&, const npy_header&) noexcept = default;
};

/// The header at the start of `bytes`, which may end right after it. A pure function of hostile
/// input: reads only inside `bytes`, allocates nothing that the input declares.
/// Throws   corrupt (not NumPy's magic, cut short, not the dictionary that NumPy writes, elements
///          beyond 2^62 bytes), unsupported (a later version; dtypes that are structured,
///          objects, text, dates, raw bytes or wider than ours; rank above 32; a header above
///          64 KiB)
npy_header parse_npy_header(std::span<const std::byte> bytes);

/// The bytes of a header, padded so that elements start at a multiple of 64: those that NumPy
/// writes, with its room for the growing axis.
/// Throws   unsupported (bfloat16 and float8, which NumPy has no code for: convert to float32)
std::string format_npy_header(const npy_header& header);

/// The header of a file, without a look at its elements.
/// Throws   as parse_npy_header, not_found, access_denied, io
npy_header inspect_npy(const std::string& path, std::uint64_t offset = 0);

/// What bytes behind the last element mean.
enum class trailing_bytes : std::uint8_t {
  refuse,  ///< corrupt: a header that lost an axis must not pass for a smaller array
  ignore,  ///< left alone: several arrays saved into one file, one after another
};

/// Where in a file an array begins, and how it is mapped.
struct npy_read_options {
  /// `read_write` needs elements that can be mapped: stores reach the file.
  shale::access access = access::read_only;

  /// Where in the file the header begins.
  std::uint64_t offset = 0;

  /// About bytes behind the last element.
  trailing_bytes trailing = trailing_bytes::refuse;
};

/// The array of an .npy file.
/// Shape    as stored; Fortran order becomes strides
/// Cost     O(1), no element touched, if they are little-endian and aligned in the file (NumPy
///          aligns them to 64 bytes). bool: one pass over the bytes. Else a copy into pool memory
/// Throws   as parse_npy_header; corrupt (elements missing, bytes behind them, a bool that is
///          neither 0 nor 1), unsupported (`read_write` where a copy is needed), out_of_memory, io
/// Lifetime the tensor keeps the mapping; the file may be removed or replaced meanwhile
tensor read_npy(const std::string& path, const npy_read_options& options = {});

/// What `write_npy` does about an existing file, and under what it runs.
struct npy_write_options {
  existing_file existing = existing_file::replace;

  /// Whose memory and threads gather strided elements; null: the shared executor.
  executor* on = nullptr;
};

/// Writes `values` as version 1.0: in Fortran order if they are dense that way and no other, else
/// row-major, as NumPy does.
/// Cost     one pass in pieces of 4 MiB; pages of a mapped source larger than half the budget are
///          let go behind. Where the source is larger than memory and its fast axis is not the
///          file's, every piece touches all of it: copy through npy_writer then
/// Throws   unsupported (dtype), already_exists, out_of_space, access_denied, cancelled, io (also
///          from the source's file)
void write_npy(const std::string& path, const tensor& values,
               const npy_write_options& options = {});

/// An .npy file whose elements are written by somebody else, in any order: the parallel engine
/// stores straight into the file.
/// Threads  the elements may be written from several threads; `finish` comes after
/// Lifetime without `finish` nothing appears under the name. The tensor outlives the writer: stores
///          after `finish` still reach the file, durable or not
class npy_writer {
 public:
  /// Reserves the file's whole space beside `path`.
  /// Throws   as write_npy, and unsupported where files cannot be mapped for writing
  npy_writer(const std::string& path, dtype type, const dims& shape,
             existing_file existing = existing_file::replace);
  ~npy_writer();
  npy_writer(npy_writer&&) noexcept;
  npy_writer& operator=(npy_writer&&) noexcept;

  /// Row-major, mapped for writing, zero at first.
  const tensor& elements() const noexcept;

  /// Makes the elements durable and gives the file its name. Once.
  /// Throws   io (also if a store was lost), already_exists, invalid_argument (called twice)
  void finish();

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace shale
