#include "shale/manipulation.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/leaves/repeated.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

// The length of an axis whose elements are repeated.
index_t checked_extent(index_t extent, index_t times, const char* function) {
  const auto product = checked_mul(extent, times);
  if (times < 0 || !product)
    throw error(errc::invalid_argument, std::string(function) + ": repetitions out of range",
                {std::to_string(extent) + " x " + std::to_string(times)});
  return *product;
}

}  // namespace

expr tile(const expr& a, const dims& times) {
  expr base = a;
  while (base.rank() < times.size()) base = base.expand_dims(0);
  dims repeats = times;
  while (repeats.size() < base.rank()) repeats.insert(0, 1);
  dims shape = base.shape();
  dims modulus = base.shape();
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    shape[axis] = checked_extent(shape[axis], repeats[axis], "tile");
    if (repeats[axis] == 1) modulus[axis] = 0;
  }
  element_count(shape);
  return allocating([&] { return repeated(base, shape, modulus, dims::filled(shape.size(), 1)); });
}

expr repeat(const expr& a, index_t times, index_t axis) {
  const index_t along = normalize_axis(axis, a.rank());
  dims shape = a.shape();
  shape[along] = checked_extent(shape[along], times, "repeat");
  element_count(shape);
  dims divisor = dims::filled(shape.size(), 1);
  divisor[along] = std::max<index_t>(times, 1);
  return allocating([&] { return repeated(a, shape, dims::filled(shape.size(), 0), divisor); });
}

expr concat(std::span<const expr> parts, index_t axis) {
  if (parts.empty()) throw error(errc::invalid_argument, "concat needs at least one part");
  const index_t along = normalize_axis(axis, parts[0].rank());
  dims shape = parts[0].shape();
  dtype type = parts[0].dtype();
  shape[along] = 0;
  for (const auto& part : parts) {
    dims other = part.shape();
    if (other.size() == shape.size()) other[along] = shape[along];
    if (!(other == shape))
      throw error(errc::invalid_argument, "concat: shapes may differ along the joined axis only",
                  {to_string(parts[0].shape()) + " and " + to_string(part.shape()) +
                   " along axis " + std::to_string(along)});
    const auto sum = checked_add(shape[along], part.shape()[along]);
    if (!sum) throw error(errc::invalid_argument, "concat: too many elements");
    shape[along] = *sum;
    type = promote(type, part.dtype());
  }
  element_count(shape);  // throws if there are too many
  return allocating([&] {
    detail::concat_leaf leaf{{}, {0}, along, axis_map::identity(shape)};
    for (const auto& part : parts) {
      leaf.pieces.push_back(make_staged(make_cast(node_of(part), type)));
      leaf.starts.push_back(leaf.starts.back() + part.shape()[along]);
    }
    return expr_of(make_node(type, shape, std::move(leaf)));
  });
}

expr stack(std::span<const expr> parts, index_t axis) {
  if (parts.empty()) throw error(errc::invalid_argument, "stack needs at least one part");
  return allocating([&] {
    const dims& shape = parts[0].shape();
    const index_t along = normalize_axis(axis, shape.size() + 1);
    std::vector<expr> deeper;
    deeper.reserve(parts.size());
    for (const expr& part : parts) {
      if (!(part.shape() == shape))
        throw error(errc::invalid_argument, "stack needs parts of one shape",
                    {"got shapes " + to_string(shape) + " and " + to_string(part.shape())});
      deeper.push_back(part.expand_dims(along));
    }
    return concat(deeper, along);
  });
}

expr rot90(const expr& a, index_t times, index_t axis_a, index_t axis_b) {
  return allocating([&] {
    const index_t from = normalize_axis(axis_a, a.rank()), to = normalize_axis(axis_b, a.rank());
    if (from == to)
      throw error(errc::invalid_argument, "rot90 turns the plane of two different axes",
                  {"got axis " + std::to_string(from) + " twice"});
    switch ((times % 4 + 4) % 4) {
      case 1:
        return a.flip({to}).swapaxes(from, to);
      case 2:
        return a.flip({from, to});
      case 3:
        return a.flip({from}).swapaxes(from, to);
      default:
        return a;
    }
  });
}

std::vector<expr> meshgrid(std::span<const expr> arrays, grid_indexing indexing) {
  return allocating([&] {
    detail::require_enumerator(indexing, grid_indexing::ij, "grid_indexing");
    dims shape;
    for (const expr& array : arrays) {
      if (array.rank() > 1)
        throw error(errc::invalid_argument, "meshgrid needs arrays with one axis",
                    {"got shape " + to_string(array.shape())});
      shape.push_back(array.size());
    }
    element_count(shape);
    std::vector<expr> grids;
    for (const expr& array : arrays) {
      const auto axis = static_cast<index_t>(grids.size());
      expr line = array.reshape({array.size()});
      for (index_t k = axis + 1; k < shape.size(); ++k) line = line.expand_dims(1);
      const expr grid = line.broadcast_to(shape);
      const bool swaps = indexing == grid_indexing::xy && shape.size() > 1;
      grids.push_back(swaps ? grid.swapaxes(0, 1) : grid);
    }
    return grids;
  });
}

expr roll(const expr& a, index_t shift, const std::optional<dims>& axes) {
  return detail::allocating([&] {
    if (!axes) return roll(a.ravel(), shift, dims{0}).reshape(a.shape());
    expr result = a;
    for (const index_t entry : *axes) {
      const index_t axis = normalize_axis(entry, a.rank());
      const index_t extent = result.shape(axis);
      if (extent == 0) continue;
      const index_t rest = shift % extent;
      const index_t places = rest < 0 ? rest + extent : rest;
      if (places == 0) continue;
      const expr parts[] = {result.narrow(axis, extent - places, places),
                            result.narrow(axis, 0, extent - places)};
      result = concat(parts, axis);
    }
    return result;
  });
}

}  // namespace shale
