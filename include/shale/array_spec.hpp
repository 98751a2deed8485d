// Describes a new array: its dtype, its shape, and how its elements are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/scalar.hpp"

namespace [[gnu::visibility("default")]] shale {

/// How the elements are stored.
enum class array_kind : std::uint8_t {
  dense,    ///< row-major and uncompressed, so that they can be mapped without a copy
  chunked,  ///< in tiles, each of which is compressed, checked and stored by itself
};

/// The unit that `codec_spec::shuffle` groups. Neighbouring elements have similar bytes and bits,
/// which compress better in groups.
enum class shuffle_mode : std::uint8_t { none, byte, bit };

/// How chunks are compressed.
enum class compressor : std::uint8_t {
  zstd,  ///< compresses well, at every level
  lz4,   ///< compresses less, and decodes most data about twice as fast
};

/// A compressor and its level. A higher level compresses more and takes longer to encode, but not
/// to decode. zstd has levels from -100 to 22. lz4 has levels from -100 to 12: up to 2 those of
/// LZ4, of which 0, 1 and 2 are the same; from 3 on those of LZ4 HC.
struct compression {
  shale::compressor compressor = shale::compressor::zstd;
  int level = 1;

  bool operator==(const compression&) const = default;
};

/// For `codec_spec::compression`, as in `{.compression = lz4()}`.
constexpr compression zstd(int level = 1) noexcept { return {compressor::zstd, level}; }
constexpr compression lz4(int level = 1) noexcept { return {compressor::lz4, level}; }

/// The stages that turn a chunk into stored bytes. Those that are set are applied in this order.
struct codec_spec {
  /// The number of mantissa bits to keep, for floating types; lossy.
  std::optional<int> bitround = std::nullopt;

  /// Store differences between neighbours, for integer types.
  bool delta = false;

  /// Group the n-th bytes (or bits) of all elements. Without a value, bytes are grouped if the
  /// chunk is compressed and elements have more than one byte.
  std::optional<shuffle_mode> shuffle = std::nullopt;

  /// Without a value, chunks are not compressed.
  std::optional<shale::compression> compression = zstd();

  bool operator==(const codec_spec&) const = default;
};

/// The description of an array that `transaction::create` makes. A dense array with a chunk shape,
/// a codec or another fill value than 0 is refused.
struct array_spec {
  shale::dtype dtype = shale::dtype::float32;
  dims shape;
  array_kind kind = array_kind::dense;

  /// For chunked arrays. Without a value, `default_chunk_shape` chooses the shape: about 1 MiB,
  /// longer along later axes.
  std::optional<dims> chunk_shape = std::nullopt;
  codec_spec codec = {};

  /// The value of elements that were never written.
  scalar fill_value = 0;
};

/// The part of `array_spec` that does not follow from the values of an array.
struct array_form {
  array_kind kind = array_kind::dense;
  std::optional<dims> chunk_shape = std::nullopt;
  codec_spec codec = {};
  scalar fill_value = 0;
};

/// A chunk shape of at most about `target_bytes` for an array of that shape.
/// Throws   invalid_argument (a negative extent, too many elements, `type` is no dtype)
dims default_chunk_shape(const dims& shape, dtype type, std::size_t target_bytes = 1u << 20);

}  // namespace shale
