// A tensor stored in a container: dense (mapped, zero-copy) or chunked (compressed tiles).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/expr.hpp"
#include "shale/region.hpp"
#include "shale/scalar.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace [[gnu::visibility("default")]] shale {

/// How the elements lie in the file.
enum class array_kind : std::uint8_t {
  dense,    ///< row-major and bare: mapped without a copy, never compressed
  chunked,  ///< tiles that are compressed, checked and stored anew one by one
};

/// What is grouped before compression: equal bytes, or equal bits, of neighbours side by side
/// compress better.
enum class shuffle_mode : std::uint8_t { none, byte, bit };

/// How a chunk becomes stored bytes: the stages that are set, in this order.
struct codec_spec {
  /// Mantissa bits to keep of floating types; lossy.
  std::optional<int> bitround = std::nullopt;

  /// Differences between neighbours of integer types.
  bool delta = false;

  /// Groups the n-th bytes (or bits) of all elements; absent: byte for multi-byte dtypes that are
  /// compressed.
  std::optional<shuffle_mode> shuffle = std::nullopt;

  /// zstd's level; absent: stored raw.
  std::optional<int> zstd_level = 1;
};

/// What `transaction::create` makes.
struct array_spec {
  shale::dtype dtype = shale::dtype::float32;
  dims shape;
  array_kind kind = array_kind::dense;

  /// Chunked only; absent: about 1 MiB a chunk, longer along later axes.
  std::optional<dims> chunk_shape = std::nullopt;
  codec_spec codec = {};

  /// What chunks that were never written read as. Dense arrays start as zeros whatever it is.
  scalar fill_value = 0;
};

/// A chunk shape of about `target_bytes` for an array of that shape.
dims default_chunk_shape(const dims& shape, dtype type, std::size_t target_bytes = 1u << 20);

/// An array in one generation: immutable.
/// Threads  every member may be called from any thread
/// Lifetime keeps its generation pinned
class array {
 public:
  /// As recorded in this generation; no element is touched.
  const std::string& name() const noexcept;
  shale::dtype dtype() const noexcept;
  const dims& shape() const noexcept;
  index_t rank() const noexcept { return shape().size(); }
  index_t size() const noexcept;
  array_kind kind() const noexcept;

  /// Elements times their width.
  std::uint64_t size_bytes() const noexcept;

  /// Bytes of element data in the file: equals size_bytes() for dense, compressed for chunked.
  std::uint64_t stored_bytes() const;

  /// Chunked: the extents of a chunk; dense: the shape.
  const dims& chunk_shape() const noexcept;

  /// The stages that every chunk has passed; none for dense.
  codec_spec codec() const;

  /// What chunks that were never written read as.
  scalar fill_value() const;

  /// The generation that last changed it.
  std::uint64_t modified() const noexcept;

  /// The notes that `transaction::set_attribute` left, by key in byte order.
  std::vector<std::pair<std::string, std::string>> attributes() const;

  /// Dense: the file's bytes themselves, mapped read-only, not verified. Chunked: read into memory,
  /// whole.
  /// Cost     dense: O(1), no element touched. Chunked: as read(region::all)
  tensor as_tensor() const;

  /// `where` as a new row-major tensor. Chunks are verified; of dense arrays, when `where` is whole
  /// rows, the segments of 1 MiB that it covers.
  /// Cost     a copy, plus one decode per touched chunk, in parallel
  /// Throws   invalid_argument (outside), corrupt (checksum), io, out_of_memory
  tensor read(const region& where, executor* on = nullptr) const;
  tensor read(executor* on = nullptr) const { return read(region::all(shape()), on); }

  /// The array as an operand of expressions, without reading it.
  operator expr() const;

  /// For the engine: the chunks as tiles. Nothing for dense arrays, whose as_tensor() is free.
  std::shared_ptr<const tile_source> tiles() const;

 private:
  friend class snapshot;
  friend class transaction;
  friend class writable_array;
  struct implementation;
  explicit array(std::shared_ptr<implementation> made) noexcept;
  std::shared_ptr<implementation> implementation_;
};

/// An array being written by a transaction.
/// Threads  disjoint regions may be written in parallel (chunked: not within one chunk)
/// Lifetime usable until its transaction commits or aborts, or removes it; then every call that
///          touches elements throws
class writable_array {
 public:
  /// As the transaction will commit it; `chunk_shape` of dense arrays is the shape.
  const std::string& name() const noexcept;
  shale::dtype dtype() const noexcept;
  const dims& shape() const noexcept;
  array_kind kind() const noexcept;
  const dims& chunk_shape() const noexcept;

  /// Dense only: the new bytes, mapped for writing. After commit the tensor is read-only; after
  /// abort it is cut off from the file and reports `failed`.
  tensor as_tensor() const;

  /// Stores `values` (converted to the array's dtype, broadcast to the region's shape); partly
  /// covered chunks are read, changed and stored.
  void write(const region& where, const tensor& values, executor* on = nullptr) const;

  /// Evaluates into the array, block by block, whatever its size; a tensor or an array is an
  /// expression too. Converted to the array's dtype, broadcast to its shape.
  void write(const expr& values, executor* on = nullptr) const;

  /// For the engine: the chunks as writable tiles. Nothing for dense arrays.
  std::shared_ptr<tile_source> tiles() const;

 private:
  friend class transaction;
  struct implementation;
  explicit writable_array(std::shared_ptr<implementation> made) noexcept;
  std::shared_ptr<implementation> implementation_;
};

}  // namespace shale
