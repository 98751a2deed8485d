#include "shale/manipulation.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

// The elements of `a` at rearranged positions, see gather_leaf.
expr gathered(const expr& a, const dims& shape, const dims& modulus, const dims& divisor) {
  return allocating([&] {
    if (const auto* constant = std::get_if<detail::constant_leaf>(&node_of(a)->content))
      return expr_of(make_constant(constant->value, shape, a.dtype(), false));
    auto input = make_staged(node_of(a));
    return expr_of(make_node(
        a.dtype(), shape,
        detail::gather_leaf{std::move(input), axis_map::identity(shape), modulus, divisor}));
  });
}

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
  return gathered(base, shape, modulus, dims::filled(shape.size(), 1));
}

expr repeat(const expr& a, index_t times, index_t axis) {
  const index_t along = normalize_axis(axis, a.rank());
  dims shape = a.shape();
  shape[along] = checked_extent(shape[along], times, "repeat");
  element_count(shape);
  dims divisor = dims::filled(shape.size(), 1);
  divisor[along] = std::max<index_t>(times, 1);
  return gathered(a, shape, dims::filled(shape.size(), 0), divisor);
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

expr roll(const expr& a, index_t shift, const std::optional<dims>& axes) {
  return detail::allocating([&] {
    if (!axes) return roll(a.ravel(), shift, dims{0}).reshape(a.shape());
    expr result = a;
    for (const index_t entry : *axes) {
      const index_t axis = normalize_axis(entry, a.rank());
      const index_t extent = result.shape(axis);
      if (extent == 0) continue;
      const index_t places = (shift % extent + extent) % extent;
      if (places == 0) continue;
      const expr parts[] = {result.narrow(axis, extent - places, places),
                            result.narrow(axis, 0, extent - places)};
      result = concat(parts, axis);
    }
    return result;
  });
}

}  // namespace shale
