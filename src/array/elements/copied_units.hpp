// Divides the bytes of a dense array into units. A transaction that changes a part of the array
// copies the units from the first to the last element of the part to new space; the others stay where
// they are, and belong to the generations before as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "array/elements/dense_bytes.hpp"
#include "format/bytes/range_set.hpp"
#include "format/bytes/types.hpp"
#include "format/catalog/array_record.hpp"
#include "shale/layout.hpp"

namespace shale::arrays {

/// The length of a unit. It is a multiple of the segments of checksums, so that whatever is copied
/// can be compared with its checksums first, and of the alignment of large extents, so that an
/// extent can be cut between any two units. The last unit of an array may be shorter.
inline constexpr std::uint64_t unit_bytes = 2u << 20;

/// The units from the first element of the view to its last one, as a range of the array's bytes; an
/// empty range for a view without elements. The view is one of a row-major array, with any strides.
format::byte_interval touched_units(const layout& view, std::size_t item_bytes,
                                    std::uint64_t array_bytes);

/// The parts of a range of units of which `known` contains no byte. `known` contains whole units.
std::vector<format::byte_interval> without(const format::byte_interval& units,
                                           const format::range_set& known);

/// The extents of an array of that many bytes after ranges of whole units have moved. `moved` is in
/// the order of the array; the units `copied` moved before. Extents that follow each other in the
/// file become one, if both hold copied units or neither does, as far as the alignment allows.
std::vector<format::extent> extents_after(const format::dense_layout& layout, std::uint64_t bytes,
                                          std::span<const moved_bytes> moved,
                                          const format::range_set& copied);

/// The range of the `count` neighbouring extents that have the fewest bytes. The array has more
/// extents than that.
format::byte_interval cheapest_run(const format::dense_layout& layout, std::uint64_t bytes,
                                   std::size_t count);

/// Whether each extent except the last holds whole units, so that extents can be cut between any two
/// units, and this machine's pages can map the pieces side by side.
bool can_be_cut(const format::dense_layout& layout) noexcept;

}  // namespace shale::arrays
