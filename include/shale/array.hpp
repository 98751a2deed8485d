// Arrays: tensors that are stored in a container, either dense (mapped without a copy) or chunked
// (in compressed tiles). This header is for reading them; writable_array.hpp is for writing.
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

#include "shale/array_spec.hpp"
#include "shale/attribute_value.hpp"
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

/// An array in one generation. It never changes.
/// Throws   invalid_argument from every member, if it was moved from; out_of_memory from members
///          that return a copy
/// Threads  every member may be called from any thread
/// Lifetime keeps its generation pinned
class array {
 public:
  /// These members describe the array. They read no element.
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

  /// The stages that encode every chunk. A dense array has none.
  codec_spec codec() const;

  /// The value of elements that were never written.
  scalar fill_value() const;

  /// The number of the generation that last changed the array.
  std::uint64_t modified() const;

  /// The attribute with that key as a T (bool, std::int64_t, std::uint64_t, double, std::string or
  /// a std::vector of one of these), or nothing if there is none: see attribute_value::as.
  ///
  ///    std::optional<double> scale = file.latest().at("dem").attribute_as<double>("scale");
  ///
  /// Throws   invalid_argument (it is of another kind), corrupt (damaged), unsupported (of a later
  ///          version), each naming array, attribute and kinds
  template <attribute_type T>
  std::optional<T> attribute_as(std::string_view key) const;

  /// The attribute with that key, of any kind, or nothing.
  /// Throws   corrupt, unsupported
  std::optional<attribute_value> typed_attribute(std::string_view key) const;

  /// The stored bytes of the attribute with that key, or nothing: see attribute_value::of_stored.
  std::optional<std::string> attribute(std::string_view key) const;

  /// The stored bytes of all attributes, sorted by the bytes of their keys.
  std::vector<std::pair<std::string, std::string>> attributes() const;

  /// The elements of a dense array in the file, mapped read-only without a copy. Engine calls
  /// compare them with their checksums if the executor has checksum_use::compared. To compare them
  /// before other reads, call storage::compare_checksums.
  /// Cost     O(1), and reads no element. If the file cannot be mapped (docs/storage.md), it reads
  ///          all elements
  /// Throws   invalid_argument (a chunked array: `read` it, or use it as an expression),
  ///          out_of_memory (also for lack of address space), io
  tensor map() const;

  /// A part of the array as a new row-major tensor. Chunks are compared with their checksums when
  /// they are decoded. A dense array has one checksum for each MiB. With checksum_use::compared,
  /// every MiB that the part touches is compared. Otherwise a MiB is compared only if it lies
  /// completely inside the part, and if the part is contiguous in the file.
  /// Cost     one copy, and decoding of each chunk that the part touches, in parallel. A chunk that
  ///          is read in part is kept decoded for the next read (executor::forget_chunks)
  /// Throws   invalid_argument (outside the array), corrupt (a checksum), io, out_of_memory,
  ///          cancelled
  tensor read(const region& part) const;
  tensor read() const { return read(region::all(shape())); }

  /// Reads the elements that `expr(array).index(entries)` selects into a new row-major tensor.
  /// Slices may have steps, also negative ones.
  /// Cost     as `eval`: decodes the chunks that hold one of the elements, in parallel
  /// Throws   as map and read; invalid_argument also for entries that do not fit the array
  tensor read_at(std::span<const index_entry> entries) const;
  tensor read_at(std::initializer_list<index_entry> entries) const {
    return read_at(std::span<const index_entry>(entries.begin(), entries.size()));
  }

  /// Reads a part of the array into `out`. `out` has the shape of the part, and may have any layout
  /// and any dtype. After an exception, `out` may be partly written. A dense array is compared as
  /// by `read` only if `out` is row-major without gaps and has the array's dtype. Otherwise it is
  /// compared only if the executor has checksum_use::compared.
  /// Cost     as read; for another dtype than the array's, as `eval`
  /// Throws   as read; invalid_argument also if `out` has another shape; access_denied (`out` is
  ///          read-only)
  void read_into(const tensor& out, const region& part) const;
  void read_into(const tensor& out) const { read_into(out, region::all(shape())); }

  /// The array as an operand of expressions. A dense array is mapped, a chunked one is read when
  /// the expression is evaluated.
  /// Throws   as map, for a dense array; out_of_memory
  operator expr() const;

  /// The chunks of the array as tiles. Null for dense arrays.
  std::shared_ptr<const tile_source> tiles() const;

  /// Lists up to `limit` chunks that the file stores, in row-major order of the grid. The list
  /// begins after the chunk `after`, or at the first chunk if `after` is nothing. A chunk that the
  /// file does not store reads as the fill value.
  /// Cost     reads the pages of the index that list them (a page lists about 90 chunks), and no
  ///          element
  /// Throws   invalid_argument (a dense array; an array that the running transaction has changed;
  ///          `after` lies outside of the grid), corrupt (damaged metadata), io, out_of_memory
  /// Lifetime the bytes stay at these places for as long as the array, or another handle of its
  ///          generation, lives
  std::vector<stored_chunk> stored_chunks(const std::optional<dims>& after = std::nullopt,
                                          std::size_t limit = SIZE_MAX) const;

  /// Reads the bytes of a chunk as the file stores them, and compares them with their checksum. The
  /// result is empty if the file does not store the chunk.
  /// Cost     reads one path of the index tree, and the bytes
  /// Throws   as stored_chunks; corrupt also if the checksum differs
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

}  // namespace shale
