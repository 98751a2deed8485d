// Reads and writes files of elements without a header.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/existing_file.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Options of `read_raw`: the facts that the file does not record.
struct raw_read_options {
  /// Row-major extents. Without a value, the tensor has one axis, up to the end of the file.
  std::optional<dims> shape = std::nullopt;

  /// The byte of the file at which the first element begins.
  std::uint64_t offset = 0;

  /// The byte order of each number, and of each part of a complex one. Big-endian numbers of more
  /// than a byte are copied.
  std::endian byte_order = std::endian::little;

  /// With `read_write`, stores reach the file; the elements must allow mapping.
  shale::access access = access::read_only;
};

/// The elements of a file as a tensor. Bytes before and after them are ignored.
/// Cost     O(1) by mapping, if they are little-endian and `offset` is a multiple of the dtype's
///          alignment (bool: one pass over the bytes). Otherwise a copy into pool memory
/// Throws   invalid_argument (the file is too short, no regular file, or has no whole number of
///          elements), corrupt (a bool that is neither 0 nor 1), unsupported (`read_write` where a
///          copy is needed), not_found, access_denied, cancelled, out_of_memory, io
/// Lifetime the tensor keeps the mapping. The file may be removed or replaced
tensor read_raw(const std::string& path, dtype type, const raw_read_options& options = {});

/// Options of `write_raw`.
struct raw_write_options {
  std::endian byte_order = std::endian::little;

  existing_file existing = existing_file::replace;
};

/// Writes the elements in row-major order, without a header.
/// Cost     as write_npy
/// Throws   as write_npy, but takes every dtype
void write_raw(const std::string& path, const tensor& values,
               const raw_write_options& options = {});

}  // namespace shale
