// A transaction that threads and handles share. It gives them its arrays and their elements, with
// all changes so far. The classes of the room `changes` change it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "array/elements/chunk_tiles.hpp"
#include "array/transaction/state/transaction_state.hpp"
#include "array/transaction/state/written_array.hpp"
#include "format/catalog/array_record.hpp"
#include "format/generations/generation_view.hpp"
#include "shale/layout.hpp"
#include "shale/level_entry.hpp"
#include "shale/storage.hpp"

namespace shale::arrays {

/// Threads  every member may be called from any thread
class shared_transaction : public transaction_state {
 public:
  using transaction_state::transaction_state;

  /// Aborts the transaction unless it has ended.
  ~shared_transaction();

  /// The record of an array as changed so far. If the array was created or updated here, `written`
  /// is set. Otherwise its data is that of `base`. The same holds for a dense array that was
  /// updated but not changed yet.
  struct found_array {
    format::array_record record;
    std::shared_ptr<written_array> written;
    std::optional<format::generation_view> base;
  };
  std::optional<found_array> find(std::string_view name) const;

  /// The names as changed so far, in byte order.
  std::vector<std::string> names(std::string_view prefix, std::string_view after,
                                 std::size_t limit) const;
  std::vector<level_entry> children(std::string_view level, std::string_view after,
                                    std::size_t limit) const;

  /// Throws   invalid_argument once the transaction ends, not_found if the array is removed
  void require_writable(const written_array& array) const;

  /// These throw as `require_writable`. The results are shared handles, because the transaction may
  /// end, or the array may be removed, in the middle of a write. A dense array's bytes are mapped
  /// at the first call; those of the base generation are copied before.
  /// Throws   also corrupt, out_of_space, io, cancelled
  storage bytes_of(written_array& array);

  /// The bytes of a dense array that a view of its elements needs, mapped for writing. They begin
  /// at byte `first` of the array. If the transaction updates the array, only these bytes are
  /// copied.
  struct dense_part {
    storage bytes;
    std::uint64_t first = 0;
  };
  dense_part part_of(written_array& array, const layout& view);

  std::shared_ptr<chunk_tiles> tiles_of(const written_array& array) const;

  /// The array's chunks as tiles that are only read.
  std::shared_ptr<const chunk_tiles> read_only_tiles_of(
      const std::shared_ptr<written_array>& array);

  /// Called when a mapping of the array lost bytes. Makes `commit` refuse, unless the array was
  /// removed: its mappings are separated from the file then.
  void note_lost_bytes(const written_array& array) noexcept;
};

}  // namespace shale::arrays
