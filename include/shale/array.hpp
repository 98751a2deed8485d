// Arrays: tensors that are stored in a container, either dense (mapped without a copy) or chunked
// (in compressed tiles).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/expr.hpp"
#include "shale/index_entry.hpp"
#include "shale/region.hpp"
#include "shale/scalar.hpp"
#include "shale/stored_chunk.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

class tile_source;  // shale/tile_source.hpp

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
  zstd,  ///< packs well, at every level
  lz4,   ///< packs less, and decodes most data about twice as fast
};

/// A compressor and how hard it tries. Levels are the compressor's own: higher ones pack more and
/// take longer to encode, but not to decode. zstd has levels from -100 to 22, lz4 from -100 to 12,
/// of which 0, 1 and 2 are one.
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

  /// For chunked arrays. Without a value, that of `default_chunk_shape`: about 1 MiB, longer along
  /// later axes.
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
/// Throws   invalid_argument (a negative extent, too many elements, no dtype)
dims default_chunk_shape(const dims& shape, dtype type, std::size_t target_bytes = 1u << 20);

/// An array in one generation. It never changes.
/// Throws   invalid_argument from every member, if it was moved from; out_of_memory from members
///          that return a copy
/// Threads  every member may be called from any thread
/// Lifetime keeps its generation pinned
class array {
 public:
  /// The description of the array. These read no element.
  const std::string& name() const;
  shale::dtype dtype() const;
  const dims& shape() const;
  index_t rank() const { return shape().size(); }
  index_t size() const;
  array_kind kind() const;

  /// size() times the bytes of an element.
  std::uint64_t size_bytes() const;

  /// The bytes of elements in the file: size_bytes() if dense, the compressed size if chunked.
  std::uint64_t stored_bytes() const;

  /// The extents of a chunk; for a dense array, its shape.
  const dims& chunk_shape() const;

  /// The stages of every chunk; for a dense array, none.
  codec_spec codec() const;

  /// The value of elements that were never written.
  scalar fill_value() const;

  /// The number of the generation that last changed the array.
  std::uint64_t modified() const;

  /// The attributes that `transaction::set_attribute` stored, sorted by the bytes of their keys.
  std::vector<std::pair<std::string, std::string>> attributes() const;

  /// The attribute with that key, or nothing.
  std::optional<std::string> attribute(std::string_view key) const;

  /// The elements of a dense array in the file, mapped read-only without a copy. Engine calls
  /// compare them with their checksums if the executor has checksum_use::compared. Before other
  /// reads, call storage::compare_checksums.
  /// Cost     O(1), reads no element. If the file cannot be mapped (docs/storage.md), reads all
  /// Throws   invalid_argument (a chunked array: `read` it, or use it as an expression),
  ///          out_of_memory (also for lack of address space), io
  tensor map() const;

  /// A part of the array as a new row-major tensor. Chunks are always compared with their
  /// checksums. A dense array has one checksum for each MiB. With checksum_use::compared, every MiB
  /// that the part touches is compared. Otherwise only those that lie inside the part as a whole
  /// are, and only if the part is contiguous in the file.
  /// Cost     one copy, and decoding of each chunk that the part touches, in parallel
  /// Throws   invalid_argument (outside the array), corrupt (a checksum), io, out_of_memory,
  ///          cancelled
  tensor read(const region& part) const;
  tensor read() const { return read(region::all(shape())); }

  /// The elements that `expr(array).index(entries)` shows, as a new row-major tensor: slices with
  /// steps, also negative ones.
  /// Cost     as `eval`: decodes the chunks that hold one of the elements, in parallel
  /// Throws   as map and read; invalid_argument (no such entries)
  tensor read_at(std::span<const index_entry> entries) const;
  tensor read_at(std::initializer_list<index_entry> entries) const {
    return read_at(std::span<const index_entry>(entries.begin(), entries.size()));
  }

  /// Reads a part of the array into `out`, which has its shape, any layout and any dtype. After an
  /// exception, `out` may be partly written.
  /// Cost     as read; another dtype costs as `eval`
  /// Throws   as read; invalid_argument also for another shape, access_denied (`out` is read-only)
  void read_into(const tensor& out, const region& part) const;
  void read_into(const tensor& out) const { read_into(out, region::all(shape())); }

  /// The array as an operand of expressions. A dense array is mapped, a chunked one is read when
  /// the expression is evaluated.
  /// Throws   as map, for a dense array; out_of_memory
  operator expr() const;

  /// The chunks of the array as tiles. Null for dense arrays.
  std::shared_ptr<const tile_source> tiles() const;

  /// Up to `limit` chunks that the file stores, in row-major order of the grid: the first ones, or
  /// those after the chunk `after`. Chunks that are missing read as the fill value.
  /// Cost     reads the pages of the index that list them (about 90 chunks each), and no element
  /// Throws   invalid_argument (a dense array; one that the running transaction has changed; `after`
  ///          lies outside of the grid), corrupt (damaged metadata), io, out_of_memory
  /// Lifetime the bytes stay at these places for as long as the array, or another handle of its
  ///          generation, lives
  std::vector<stored_chunk> stored_chunks(const std::optional<dims>& after = std::nullopt,
                                          std::size_t limit = SIZE_MAX) const;

  /// The bytes of a chunk as the file stores them, compared with their checksum. There are none if
  /// the file does not store the chunk.
  /// Cost     one path of the index, and a read of the bytes
  /// Throws   as stored_chunks; corrupt also for another checksum
  std::vector<std::byte> read_stored_chunk(const dims& index) const;

 private:
  friend class snapshot;
  friend class transaction;
  friend class writable_array;
  struct implementation;
  explicit array(std::shared_ptr<implementation> made) noexcept;
  implementation& state() const;
  std::shared_ptr<implementation> implementation_;
};

/// An array that a transaction writes.
/// Throws   invalid_argument: from every member, if it was moved from; from members that access
///          elements, also after the end of the transaction. not_found: from members that access
///          elements, after the transaction has removed the array
/// Threads  every member may be called from any thread. Writes of several threads to one chunk take
///          turns: no element of disjoint regions is lost. Where regions overlap, each chunk is as
///          if the writes had come one after the other, in an order that may differ between chunks.
///          Regions of a dense array that are written at the same time must not overlap
/// Lifetime it does not keep its transaction open
class writable_array {
 public:
  /// The description of the array, as the transaction will commit it. `chunk_shape` of a dense
  /// array is its shape.
  const std::string& name() const;
  shale::dtype dtype() const;
  const dims& shape() const;
  index_t rank() const { return shape().size(); }
  index_t size() const;
  array_kind kind() const;
  const dims& chunk_shape() const;

  /// The new elements of a dense array, mapped for writing. Commit makes the tensor read-only, and
  /// the tensor pins the new generation. After an abort, or if the generation could not be pinned
  /// (the file cannot be read, no descriptor is left), it no longer belongs to the file, and its
  /// storage is `failed()`.
  /// Cost     O(1). The first time after `update`: a copy of the array, in parallel. To change a
  ///          part of it, `write` costs less
  /// Throws   invalid_argument (a chunked array, the transaction has ended), out_of_memory,
  ///          out_of_space, unsupported (the file cannot be mapped for writing), io; after `update`
  ///          also corrupt (damaged elements, naming segment and byte), cancelled
  /// Threads  the caller synchronises stores through the tensor, also with `commit`
  tensor map() const;

  /// Stores `values`, converted to the array's dtype and broadcast to the region's shape.
  /// Cost     one pass over the region, in parallel. Each chunk that it touches is compressed; one
  ///          that it covers in part is read first. Of a dense array that is updated, the units of
  ///          2 MiB from the region's first element to its last are copied first, once in a
  ///          transaction
  /// Throws   invalid_argument (outside the array, shapes that do not broadcast, the transaction
  ///          has ended); not_found (the array was removed); corrupt (a chunk that is covered in
  ///          part, or a unit that is copied, is damaged); unsupported (as `map`); out_of_space;
  ///          io; out_of_memory; cancelled.
  ///          The transaction goes on, with the elements that were stored until then. But if the
  ///          device refused bytes of a chunk (out_of_space, io), `commit` refuses, too
  /// Threads  regions that share no chunk are written in parallel
  void write(const region& part, const tensor& values) const;

  /// Evaluates an expression into a part of the array, block by block. It is converted to the
  /// array's dtype and broadcast to the shape of the part.
  /// Cost     as `eval` of the expression, and each chunk that the part touches is compressed once;
  ///          one that it covers only in part is read first. An expression that reads the array
  ///          itself at other places than it is stored at (`transaction::find`) is first computed
  ///          into memory as a whole
  /// Throws   as for a tensor, as `eval`, and exceptions of the caller's tile sources
  void write(const region& part, const expr& values) const;

  /// Evaluates an expression into the elements that `index(entries)` of a tensor would show, block
  /// by block: slices with steps, also negative ones. It is broadcast to their shape.
  /// Cost, Throws   as for a region; invalid_argument also for entries that fit no such array
  void write_at(std::span<const index_entry> entries, const expr& values) const;
  void write_at(std::initializer_list<index_entry> entries, const expr& values) const {
    write_at(std::span<const index_entry>(entries.begin(), entries.size()), values);
  }

  /// Evaluates an expression into the whole array, block by block. It is converted to the array's
  /// dtype and broadcast to its shape. A tensor or an array is an expression too.
  /// Cost     as `eval` of the expression, and each chunk is compressed once
  /// Throws   as for a region, as `eval`, and exceptions of the caller's tile sources
  void write(const expr& values) const;

  /// The chunks of the array as writable tiles. Null for dense arrays. Between the `load` and the
  /// `store` of a tile, another thread may store it: `write` changes a part without that.
  /// Throws   invalid_argument (the transaction has ended), not_found (the array was removed)
  std::shared_ptr<tile_source> tiles() const;

 private:
  friend class transaction;
  struct implementation;
  explicit writable_array(std::shared_ptr<implementation> made) noexcept;
  implementation& state() const;
  std::shared_ptr<implementation> implementation_;
};

}  // namespace shale
