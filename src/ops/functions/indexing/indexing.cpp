// Indexing by arrays of integers and by masks, which is NumPy's advanced indexing.
//
// Entries that are not arrays are applied first. They make one view of the operand, which keeps the
// whole of each axis that an array indexes. Then one leaf reads the elements of that view at the
// positions that the arrays name. A mask is replaced by the coordinates of its true elements.
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/leaves/indices.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/expr.hpp"
#include "shale/masks.hpp"
#include "shale/reductions.hpp"

namespace shale {

using namespace ops;
using detail::allocating;
using detail::position_of_axis;

namespace {

bool is_mask(const expr& array) { return array.dtype() == dtype::boolean; }

// The number of the operand's axes that an entry takes.
index_t axes_of(const expr_index_entry& entry) {
  if (entry.is_array()) return is_mask(entry.array()) ? entry.array().rank() : 1;
  const index_entry_kind kind = entry.basic().kind();
  return kind == index_entry_kind::position || kind == index_entry_kind::range ? 1 : 0;
}

// An array among the entries. A mask indexes several axes; both numbers are those of the first one.
struct array_entry {
  expr array;
  index_t axis;   // the axis of the view
  index_t named;  // the same axis as one of the operand, which errors name
};

// The entries, sorted into those of the view and the arrays.
struct sorted_entries {
  std::vector<index_entry> basic;
  std::vector<array_entry> arrays;
  index_t place = 0;  // the number of axes of the view that come before those of the arrays
};

// Finds where the axes of the arrays belong in the result: where the first array stands, or in
// front if another entry stands between two arrays. Integers count as arrays here.
class array_place {
 public:
  /// Takes the next entry, before which `axes` axes of the view lie.
  void next(bool is_array, index_t axes) noexcept {
    if (!is_array) {
      ended_ = first_.has_value();
      return;
    }
    if (!first_) first_ = axes;
    else if (ended_) first_ = 0;
  }
  index_t result() const noexcept { return first_.value_or(0); }

 private:
  std::optional<index_t> first_;
  bool ended_ = false;  // an entry that is not an array has followed the first array
};

sorted_entries sorted(const expr& operand, std::span<const expr_index_entry> entries) {
  index_t rest = operand.rank();
  for (const expr_index_entry& entry : entries) rest -= axes_of(entry);
  sorted_entries result;
  array_place place;
  index_t axis = 0, named = 0;
  for (const expr_index_entry& entry : entries) {
    const index_t taken = axes_of(entry);
    if (entry.is_array()) {
      place.next(true, axis);
      result.arrays.push_back({entry.array(), axis, named});
      result.basic.insert(result.basic.end(), static_cast<std::size_t>(taken), slice{});
      axis += taken;
      named += taken;
      continue;
    }
    const index_entry_kind kind = entry.basic().kind();
    place.next(kind == index_entry_kind::position, axis);
    result.basic.push_back(entry.basic());
    const index_t covered = kind == index_entry_kind::rest ? rest : taken;
    named += covered;
    axis += kind == index_entry_kind::position ? 0 : covered;
    if (kind == index_entry_kind::new_axis) ++axis;
  }
  result.place = place.result();
  return result;
}

void require_fit(const expr& mask, const expr& view, const array_entry& entry) {
  for (index_t k = 0; k < mask.rank(); ++k)
    if (mask.shape(k) != view.shape(entry.axis + k))
      throw error(errc::invalid_argument,
                  "index: a mask has other extents than the axes it indexes",
                  {"axis " + std::to_string(entry.named + k) + " has " +
                   std::to_string(view.shape(entry.axis + k)) + " positions, and the mask has " +
                   std::to_string(mask.shape(k)) + " there"});
}

// The positions that the arrays name, one array of int64 for each axis that they index.
struct index_arrays {
  std::vector<expr> positions;
  dims shape;                          // the shape to which all arrays are broadcast
  std::vector<position_of_axis> axes;  // by axis of the view; empty for axes without an array

  void broadcast(const dims& other) { shape = broadcast_shapes(shape, other); }
  void add(const expr& array, index_t axis, index_t named) {
    axes[static_cast<std::size_t>(axis)] = {.index = static_cast<index_t>(positions.size()),
                                            .named = named};
    positions.push_back(array);
  }
};

index_arrays arrays_of(const expr& view, const std::vector<array_entry>& entries) {
  index_arrays result;
  result.axes.resize(static_cast<std::size_t>(view.rank()));
  for (const array_entry& entry : entries) {
    if (!is_mask(entry.array)) {
      result.broadcast(entry.array.shape());
      result.add(as_positions(entry.array, "index"), entry.axis, entry.named);
    } else if (entry.array.rank() == 0) {
      result.broadcast({eval(count_nonzero(entry.array)).item().as<index_t>()});
    } else {
      const std::vector<tensor> coordinates = nonzero(entry.array);
      result.broadcast(coordinates[0].shape());
      for (std::size_t k = 0; k < coordinates.size(); ++k)
        result.add(coordinates[k], entry.axis + static_cast<index_t>(k),
                   entry.named + static_cast<index_t>(k));
    }
  }
  return result;
}

// The elements of the view at the positions. The axes of the arrays come behind the first `place`
// axes of the view that no array indexes.
expr gathered(const expr& view, index_arrays arrays, index_t place) {
  dims shape;
  const auto insert_axes = [&] {
    for (const index_t extent : arrays.shape) shape.push_back(extent);
  };
  index_t others = 0;
  for (index_t axis = 0; axis < view.rank(); ++axis) {
    position_of_axis& from = arrays.axes[static_cast<std::size_t>(axis)];
    if (from.index >= 0) continue;
    if (others++ == place) insert_axes();
    from.axis = shape.size();
    shape.push_back(view.shape(axis));
  }
  if (others <= place) insert_axes();
  for (expr& positions : arrays.positions) positions = with_axes_behind(positions, others - place);
  return indexed(view, shape, std::move(arrays.axes), arrays.positions);
}

}  // namespace

expr_index_entry::expr_index_entry(const tensor& array) : expr_index_entry(expr(array)) {}
expr_index_entry::expr_index_entry(const expr& array) : basic_(slice{}), array_(node_of(array)) {}
expr expr_index_entry::array() const { return expr_of(array_); }

expr expr::index(std::span<const expr_index_entry> entries) const {
  return allocating([&] {
    const sorted_entries parts = sorted(*this, entries);
    const expr view = index(std::span<const index_entry>(parts.basic));
    if (parts.arrays.empty()) return view;
    for (const array_entry& entry : parts.arrays)
      if (is_mask(entry.array)) require_fit(entry.array, view, entry);
    const expr& first = parts.arrays[0].array;
    if (parts.arrays.size() == 1 && is_mask(first) && first.rank() == view.rank())
      return expr(masked_select(view, first));
    return gathered(view, arrays_of(view, parts.arrays), parts.place);
  });
}

}  // namespace shale
