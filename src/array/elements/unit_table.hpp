// Says where the bytes of a dense array lie while a transaction changes it, and which of them lie
// in new space. It is a map, so that the cost of a write depends on the extents that it touches,
// not on the number of all extents. copied_units.hpp says what units are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "array/elements/dense_bytes.hpp"
#include "format/bytes/range_set.hpp"
#include "format/bytes/types.hpp"

namespace shale::arrays {

/// Bytes are *new* if they lie in space of the transaction; the others are *old*. Extents that
/// follow each other in the file become one if both are new or both are old, as far as the
/// alignment allows.
/// Cost     O(log(extents) + the extents that a call returns or replaces), unless it says otherwise
/// Threads  const calls may run at once
class unit_table {
 public:
  /// An array of no bytes.
  unit_table() = default;

  /// An array that consists of the bytes of these extents. Its parts `fresh` are new, and are given
  /// in the order of the array.
  /// Cost     O(extents * log(extents))
  explicit unit_table(std::span<const format::extent> extents,
                      std::span<const format::byte_interval> fresh = {});

  /// The number of extents.
  std::size_t size() const noexcept { return pieces_.size(); }

  bool has_new_bytes() const noexcept { return has_new_bytes_; }

  /// Whether that byte of the array is new.
  bool is_new(std::uint64_t byte) const;

  /// The parts of a range of the array's bytes that are old, in order.
  std::vector<format::byte_interval> old_parts(const format::byte_interval& range) const;

  /// All parts that are new, in order.
  /// Cost     O(extents)
  std::vector<format::byte_interval> new_parts() const;

  /// Where the bytes of a range lie, in order.
  std::vector<format::extent> pieces(const format::byte_interval& range) const;

  /// `extents` gives all extents, in order. `new_extents` gives only those that are new.
  /// Cost     O(extents)
  std::vector<format::extent> extents() const;
  std::vector<format::extent> new_extents() const;

  /// Notes that ranges of the array lie elsewhere from now on, and are new. `moved` is in the order
  /// of the array.
  /// Throws   bad_alloc: then nothing has moved
  void move(std::span<const moved_bytes> moved);

 private:
  struct piece {
    format::extent place;
    bool is_new = false;
  };
  using piece_map = std::map<std::uint64_t, piece>;  // by the position in the array

  piece_map::const_iterator containing(std::uint64_t byte) const;
  std::vector<format::byte_interval> runs(const format::byte_interval& range, bool of_new) const;
  void cut(std::uint64_t byte);
  void join(piece_map::iterator first) noexcept;
  bool join_with_next(piece_map::iterator first) noexcept;

  piece_map pieces_;
  std::uint64_t bytes_ = 0;
  bool has_new_bytes_ = false;
};

}  // namespace shale::arrays
