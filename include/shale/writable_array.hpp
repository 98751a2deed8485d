// Arrays that a transaction writes, as a whole, in regions or in tiles.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "shale/array_spec.hpp"
#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/expr.hpp"
#include "shale/index_entry.hpp"
#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

class array;          // shale/array.hpp
class tile_source;    // shale/tile_source.hpp
struct rechunk_plan;  // shale/rechunk.hpp

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
  /// (the file cannot be read, no descriptor is left), the tensor no longer belongs to the file,
  /// and its storage is `failed()`.
  /// Cost     O(1). But the first call after `update` copies the array, in parallel. `write` costs
  ///          less to change a part of it
  /// Throws   invalid_argument (a chunked array, the transaction has ended), out_of_memory,
  ///          out_of_space, unsupported (the file cannot be mapped for writing), io; after `update`
  ///          also corrupt (damaged elements, naming segment and byte), cancelled
  /// Threads  the caller synchronises stores through the tensor, also with `commit`
  tensor map() const;

  /// Stores `values`, converted to the array's dtype and broadcast to the region's shape.
  /// Cost     one pass over the region, in parallel. Each chunk that it touches is compressed; one
  ///          that it covers in part is read first. In a dense array of `update`, the units of
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
  ///          one that it covers only in part is read first. An expression may read the array
  ///          itself (`transaction::find`). If it reads other places than those that it is stored
  ///          at, it is first computed into memory as a whole
  /// Throws   as for a tensor, as `eval`, and exceptions of the caller's tile sources
  void write(const region& part, const expr& values) const;

  /// Evaluates an expression, block by block, into the elements that `index(entries)` of a tensor
  /// would select. Slices may have steps, also negative ones. The expression is broadcast to the
  /// shape of these elements.
  /// Cost     as for a region. In a dense array of `update`, all units from the first element to
  ///          the last are copied, gaps included: `x.write_at({slice{.step = 1000}}, y)` copies
  ///          nearly all of `x`. If the gaps are longer than 2 MiB, a write for each slice costs
  ///          less
  /// Throws   as for a region; invalid_argument also for entries that fit no such array
  void write_at(std::span<const index_entry> entries, const expr& values) const;
  void write_at(std::initializer_list<index_entry> entries, const expr& values) const {
    write_at(std::span<const index_entry>(entries.begin(), entries.size()), values);
  }

  /// Evaluates an expression into the whole array, block by block. It is converted to the array's
  /// dtype and broadcast to its shape. A tensor or an array is an expression too.
  /// Cost     as `eval` of the expression, and each chunk is compressed once
  /// Throws   as for a region, as `eval`, and exceptions of the caller's tile sources
  void write(const expr& values) const;

  /// Stores all elements of `from`, an array of any container that has this one's shape. They are
  /// compared with their checksums before they are stored, also those of a dense array.
  ///
  /// If both arrays are chunked and have the same dtype, chunk shape, codec and fill value, and
  /// this one stores no chunk yet, then stored bytes are copied as they are: nothing is decoded,
  /// and chunks that are absent stay absent.
  /// Cost     stored bytes that are copied as they are: a read, two checksums and a write, in
  ///          parallel. The list of chunks takes 40 bytes of memory for each chunk, and at most a
  ///          sixteenth of the budget. If there are more chunks, they are copied part by part, and
  ///          each part is reported as a pass of its own. Otherwise as `write(expr(from))`
  /// Returns  the number of chunks whose stored bytes were copied as they are
  /// Throws   as `write` of an expression, and as array::read; invalid_argument also for another
  ///          shape; corrupt, with array, chunk and byte. A part of the elements may be stored then
  std::uint64_t copy_from(const array& from) const;

  /// The chunks of the array as writable tiles. Null for dense arrays. If another thread stores a
  /// tile between your `load` and your `store`, what it stored is lost; a `write` to a part of a
  /// chunk prevents this. Each store is a write of its own, so a commit may come between two of
  /// them.
  /// Throws   invalid_argument (the transaction has ended), not_found (the array was removed)
  std::shared_ptr<tile_source> tiles() const;

 private:
  friend class transaction;
  friend rechunk_plan rechunk(const array& from, const writable_array& to);
  struct implementation;
  explicit writable_array(std::shared_ptr<implementation> made) noexcept;
  implementation& state() const;
  std::shared_ptr<implementation> implementation_;
};

}  // namespace shale
