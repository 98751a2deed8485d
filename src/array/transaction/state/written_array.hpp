// Holds the state of an array that a transaction creates or changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array/elements/chunk_tiles.hpp"
#include "array/elements/unit_table.hpp"
#include "format/bytes/range_set.hpp"
#include "format/catalog/array_record.hpp"
#include "format/generations/generation_view.hpp"
#include "format/transaction/transaction.hpp"
#include "shale/storage.hpp"

namespace shale::arrays {

/// The objects that a mapping of a transaction keeps alive. One is the open file, which all
/// mappings and transactions of the container share. After the commit, the other one is a pin on
/// the generation.
struct kept_by_mapping {
  std::shared_ptr<const void> file;
  std::optional<format::generation_view> pin;
};

/// A dense array that a transaction updates has the bytes of the base generation at first. Before
/// some of them are written, their units are copied to new space.
struct shared_bytes {
  /// Whether a part of the units can be copied. Otherwise the first write copies all of them.
  bool can_be_cut = true;

  unit_table units;                            ///< where each byte lies, and which are copied
  std::vector<format::byte_interval> in_work;  ///< the units that a thread copies now

  /// The checksums of the base generation; null before the first copy.
  std::shared_ptr<const std::vector<std::uint64_t>> sums;
  std::uint64_t base_bytes = 0;  ///< the length that the array has there

  /// Where an append has divided a unit, so that it need not copy what is before; 0: nowhere. The
  /// segment with that byte was compared with its checksum then.
  std::uint64_t divided_at = 0;

  /// Whether the array has another shape than in the base generation.
  bool reshaped = false;

  /// Whether the array is still that of the base generation.
  bool unchanged() const noexcept { return !units.has_new_bytes() && !reshaped; }
};

/// The parts of a transaction change the members, but only while they hold its state lock. The
/// dtype, the shape and the kind of the record never change, so they are read without the lock: an
/// array that gets another shape gets another object.
struct written_array {
  explicit written_array(format::array_record stored)
      : name(stored.name), record(std::move(stored)) {}

  std::string name;  ///< the present name: `rename` changes it
  /// This record has the present dtype, shape, codec, and extents of a dense array. The catalog has
  /// the present name, attributes and chunk index. For an array that is updated, the catalog has
  /// the old extents until the commit. For a dense array, it has the old shape until an append
  /// ends. `shared` knows where the units of a dense array lie; `settle` enters their extents here.
  format::array_record record;
  bool removed = false;

  /// Set when an object of another shape takes its place. The chunks can still be read while the
  /// operation that changes the shape runs.
  bool resized = false;
  bool readable = true;

  // `shared` is set while some bytes of a dense array may be those of the base generation. A thread
  // that needs units which another thread copies waits until `copies_ended` changes. (A child that
  // is forked meanwhile can destroy an atomic number, but not a condition variable.)
  std::optional<shared_bytes> shared;
  std::atomic<std::uint32_t> copies_ended = 0;

  // The number of calls that write bytes of a dense array at the moment, and the parts that such
  // calls have mapped. The shape does not change while there is such a call.
  int writers = 0;
  bool was_written = false;  ///< whether a call other than the append that made this has written
  std::vector<storage> windows;

  // The bytes of a dense array, mapped at the first use, and what the mapping keeps alive.
  storage bytes;
  std::shared_ptr<kept_by_mapping> kept;

  // The chunks of a chunked array.
  std::shared_ptr<chunk_tiles> tiles;

  /// Throws   not_found if the array was removed, invalid_argument if it was resized
  void require_there() const;

  /// The same for reading, which stays possible for longer.
  void require_readable() const;

  /// Enters the present extents of a dense array in the record.
  /// Cost     O(extents)
  void settle();

  /// Maps a dense array's new bytes for writing. This is called at their first use, because the
  /// number of a process's mappings is limited (65,530 by default).
  void map_bytes(format::transaction& in, const std::string& path);

  /// Detaches the mapping from the file: it shows zeros, and its storage is marked failed.
  void detach_from_file() noexcept;

  /// Called in a commit, once its generation `newest` is durable, for a mapping that a tensor still
  /// shows. The mapping stays, pins the generation, and is inherited by forked children. Returns
  /// false if the array has other bytes there, because somebody has written over the file.
  bool keep_mapping(const format::generation_view& newest);

  /// Whether any handle other than the transaction's own shows the mapping.
  bool is_held_by_others() const noexcept { return bytes && bytes.use_count() > 1; }
};

/// An array of the base generation, which the transaction has not changed yet.
std::shared_ptr<written_array> array_of_base(format::array_record record);

}  // namespace shale::arrays
