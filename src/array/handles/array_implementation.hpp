// The implementations of the handles `array` and `writable_array`. Copies of a handle share one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "array/elements/chunk_tiles.hpp"
#include "array/elements/mapped_checksums.hpp"
#include "array/transaction/shared_transaction.hpp"
#include "format/generations/generation_view.hpp"
#include "parallel/sources/axis_map.hpp"
#include "shale/array.hpp"
#include "shale/storage.hpp"
#include "shale/writable_array.hpp"
#include "storage/system/fork_safe_mutex.hpp"
#include "storage/system/long_turn.hpp"

namespace shale {

struct array::implementation {
  /// An array of a pinned generation.
  implementation(std::string path, format::array_record record, format::generation_view view,
                 std::shared_ptr<const parallel::tile_owner> owner);

  /// An array as a transaction found it.
  implementation(const std::shared_ptr<arrays::shared_transaction>& owner,
                 arrays::shared_transaction::found_array found);

  std::string path;
  format::array_record record;

  // Reads the chunks of a chunked array; null for a dense one.
  std::shared_ptr<const arrays::chunk_tiles> tiles;

  // The generation that the array belongs to; nothing if a transaction writes it.
  std::optional<format::generation_view> view;

  // For a dense array that a transaction writes: the transaction, and its state of the array, which
  // maps the bytes when they are first used. Null for other arrays.
  std::shared_ptr<arrays::shared_transaction> writer;
  std::shared_ptr<arrays::written_array> written;

  // The bytes of a dense array of a generation, mapped at the first use, and their checksums. On a
  // file system without mappings, the first use reads all bytes. So one thread at a time has the
  // turn to map, and the mutex is held only to read the members or to set them.
  detail::long_turn mapping;
  detail::fork_safe_mutex mutex;
  std::shared_ptr<arrays::mapped_checksums> sums;
  storage mapped;

  std::string label() const;

  /// Throws   invalid_argument: it has no chunks, or a transaction writes it, or `index` lies
  ///          outside of its grid
  void require_stored_chunks() const;
  void require_in_grid(const dims& index) const;

  /// All elements of a dense array, over the file's own bytes.
  tensor dense();

  /// The bytes of a dense array of a generation, and their checksums, or null if it has none.
  storage mapped_bytes();
  std::shared_ptr<arrays::mapped_checksums> checksums();

  /// Reads a part of the array into a tensor of its shape and of the array's dtype.
  void read(const region& part, const tensor& result, executor& on);

  /// Compares the segments that the range touches with their checksums, unless this process has
  /// done so before. The array is dense and belongs to a generation.
  void compare_checksums(byte_range range);
};

struct writable_array::implementation {
  explicit implementation(std::shared_ptr<arrays::shared_transaction> transaction_state,
                          std::shared_ptr<arrays::written_array> array_state = nullptr) noexcept
      : owner(std::move(transaction_state)), written(std::move(array_state)) {}

  std::shared_ptr<arrays::shared_transaction> owner;
  std::shared_ptr<arrays::written_array> written;

  /// Throws   invalid_argument (the transaction has ended), not_found (removed)
  void require_writable() const { owner->require_writable(*written); }
  bool is_dense() const noexcept { return written->record.is_dense(); }
  std::string frame(const std::string& doing) const;
  tensor dense() const;

  /// The elements of a dense array that the view shows, mapped for writing.
  tensor part(const parallel::axis_map& view) const;

  /// Evaluates an expression into mapped elements of the array.
  void store_in_mapped(const tensor& into, const expr& values) const;

  /// Whether a chunked array stores a chunk, with all changes so far.
  bool has_chunks() const;

  /// Evaluates an expression into the elements that the view shows.
  void write(const parallel::axis_map& view, const expr& values) const;

  /// The same for the part of a dense array that an append has made.
  void write_new_part(const region& added, const expr& values) const;
};

}  // namespace shale
