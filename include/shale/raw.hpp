// Bare elements in a file that says nothing about them.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/foreign_file.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

class executor;

/// What the file does not say about its elements.
struct raw_read_options {
  /// Row-major extents; absent: one axis from `offset` to the end of the file.
  std::optional<dims> shape = std::nullopt;

  /// The byte of the first element.
  std::uint64_t offset = 0;

  /// Of every number (of both parts, if complex); big-endian ones wider than a byte are copied.
  std::endian byte_order = std::endian::little;

  /// `read_write` needs elements that can be mapped: stores reach the file.
  shale::access access = access::read_only;
};

/// Elements of any dtype from a file. Bytes before and behind them are left alone.
/// Cost     O(1), mapped, if little-endian and `offset` is a multiple of the dtype's alignment.
///          bool: one pass over the bytes. Else a copy into pool memory
/// Throws   invalid_argument (the file is too short, or not a whole number of elements), corrupt (a
///          bool that is neither 0 nor 1), unsupported (`read_write` where a copy is needed),
///          not_found, access_denied, out_of_memory, io
tensor read_raw(const std::string& path, dtype type, const raw_read_options& options = {});

/// How `write_raw` stores elements.
struct raw_write_options {
  std::endian byte_order = std::endian::little;

  /// As in `npy_write_options`.
  existing_file existing = existing_file::replace;
  executor* on = nullptr;
};

/// Writes the elements row-major and nothing else.
/// Cost     as write_npy
/// Throws   already_exists, out_of_space, access_denied, io
void write_raw(const std::string& path, const tensor& values,
               const raw_write_options& options = {});

}  // namespace shale
