// Divides the bytes of a dense array into units. A transaction that changes a part of the array
// copies the units from the first to the last element of the part to new space. The other units
// stay where they are, and earlier generations share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "array/elements/dense_places.hpp"
#include "format/bytes/range_set.hpp"
#include "format/catalog/array_record.hpp"
#include "shale/layout.hpp"

namespace shale::arrays {

/// The length of a unit; the last unit of an array may be shorter. It is a multiple of the length
/// that one checksum covers, so that a unit can be compared with its checksums before it is copied.
/// It is a multiple of the alignment of large extents too, so that an extent can be cut between any
/// two units.
inline constexpr std::uint64_t unit_bytes = 2u << 20;

/// An append divides the last unit at a multiple of this length, so that it copies little. It is a
/// multiple of the pages of most machines.
inline constexpr std::uint64_t division_bytes = 64u << 10;

/// The units from the first element of the view to its last one, as a range of the array's bytes;
/// an empty range for a view without elements. The view shows a row-major array, with any strides.
/// A view that begins at byte `divided_at` or behind it touches only the part of that unit from
/// there on; 0: no unit is divided.
format::byte_interval touched_units(const layout& view, std::size_t item_bytes,
                                    std::uint64_t array_bytes, std::uint64_t divided_at);

/// How many bytes at the beginning of an array stay where they are when an append makes it longer.
/// The others are copied to the new extent. If the last unit becomes full, that is the whole unit.
/// Otherwise it is less than `division_bytes`, and those extents of the unit that are not longer
/// than all that the new extent holds. So the unit has few extents, and each byte is copied few
/// times.
std::uint64_t kept_by_append(const format::dense_layout& layout, std::uint64_t bytes_before,
                             std::uint64_t bytes_after);

/// Divides ranges of an array of `bytes` bytes so that each can become an extent of its own: a
/// large extent has to hold whole units, unless it is the last one.
std::vector<format::byte_interval> cut_at_units(const std::vector<format::byte_interval>& ranges,
                                                std::uint64_t bytes);

/// The range of the `count` neighbouring extents that have the fewest bytes, and that end with a
/// unit. The array has more than `count` extents.
format::byte_interval cheapest_run(const format::dense_layout& layout, std::uint64_t bytes,
                                   std::size_t count);

/// Whether the extents of an array of `bytes` bytes can be cut between any two units. Each extent
/// before the last unit must hold whole units, and this machine's pages must be small enough to map
/// the pieces side by side.
bool can_be_cut(const format::dense_layout& layout, std::uint64_t bytes) noexcept;

}  // namespace shale::arrays
