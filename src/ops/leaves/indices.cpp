#include "ops/leaves/indices.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "ops/graph/node_access.hpp"
#include "ops/graph/views.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"

namespace shale::ops {

expr as_positions(const expr& indices, const char* function) {
  const dtype type = indices.dtype();
  if (!is_integer(type))
    throw error(
        errc::invalid_argument, std::string(function) + " needs indices of an integer dtype",
        {"got " + std::string(name(type)),
         type == dtype::boolean ? "for masks there is masked_select" : "cast them to int64 first"});
  if (type != dtype::uint64) return astype(indices, dtype::int64);
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return astype(minimum(indices, most), dtype::int64);
}

void require_not_longer(const dims& indices, const dims& array, index_t axis, const char* function,
                        const char* array_name) {
  bool fits = indices.size() == array.size();
  for (index_t k = 0; fits && k < array.size(); ++k) fits = k == axis || indices[k] <= array[k];
  if (!fits)
    throw error(errc::invalid_argument,
                std::string(function) + " needs indices that are no longer than the " + array_name +
                    ", except along the axis",
                {"got shapes " + to_string(array) + " and " + to_string(indices) + ", axis " +
                 std::to_string(axis)});
}

bool is_read_from_tiles(const expr& a, index_t count) {
  return std::holds_alternative<detail::source_leaf>(node_of(a)->content) && count <= a.size();
}

expr indexed(const expr& a, const dims& shape, std::vector<detail::position_of_axis> axes,
             const std::vector<expr>& indices) {
  const index_t count = element_count(shape);  // throws if there are too many
  std::vector<node_ref> held;
  held.reserve(indices.size());
  for (const expr& index : indices) {
    const node_ref own = make_staged(node_of(index));
    held.push_back(make_view(own, axis_map::identity(own->shape).broadcast_to(shape)));
  }
  const bool from_tiles = is_read_from_tiles(a, count);
  node_ref leaf =
      make_node(a.dtype(), shape,
                detail::indexed_leaf{from_tiles ? node_of(a) : make_staged(node_of(a)),
                                     std::move(held), std::move(axes), axis_map::identity(shape)});
  return expr_of(from_tiles ? make_staged(leaf) : std::move(leaf));
}

expr with_axes_behind(expr values, index_t count) {
  for (index_t k = 0; k < count; ++k) values = values.expand_dims(values.rank());
  return values;
}

void throw_index_out_of_range(index_t index, index_t axis, index_t extent) {
  // A uint64 may have been larger, see as_positions.
  const bool largest = index == std::numeric_limits<std::int64_t>::max();
  throw error(errc::invalid_argument, "an index is out of range",
              {std::string("index ") + (largest ? "at least " : "") + std::to_string(index) +
               " along axis " + std::to_string(axis) + ", which has " + std::to_string(extent) +
               " positions"});
}

}  // namespace shale::ops
