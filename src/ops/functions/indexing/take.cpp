#include "shale/take.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/leaves/indices.hpp"
#include "parallel/executor/executor_state.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/manipulation.hpp"

namespace shale {

using namespace ops;
using detail::allocating;
using detail::position_of_axis;

namespace {

void require_counts(const expr& counts, index_t length) {
  if (is_inexact(counts.dtype()))
    throw error(errc::invalid_argument, "repeat needs counts that are integers",
                {"got " + std::string(name(counts.dtype()))});
  if (counts.rank() > 1 || (counts.size() != 1 && counts.size() != length))
    throw error(errc::invalid_argument, "repeat needs one count, or one for each position",
                {"got counts of shape " + to_string(counts.shape()) + ", and the axis has length " +
                 std::to_string(length)});
}

// Throws   invalid_argument if a count is negative; an integer beyond int64 is negative here, too
index_t sum_of(std::span<const std::int64_t> counts) {
  index_t sum = 0;
  for (const std::int64_t count : counts) {
    const auto next = checked_add(sum, count);
    if (count < 0 || !next)
      throw error(errc::invalid_argument, "repeat: counts out of range",
                  {std::to_string(sum) + " positions before a count of " + std::to_string(count)});
    sum = *next;
  }
  return sum;
}

// Each position as often as its count says. Checks for a cancellation at intervals.
tensor repeated_positions(std::span<const std::int64_t> counts, index_t sum, const executor& on) {
  constexpr index_t between_looks = index_t{1} << 14;
  const tensor made = tensor::empty({sum}, dtype::int64, &on.pool());
  auto* next = reinterpret_cast<std::int64_t*>(made.data());
  index_t position = 0;
  for (const std::int64_t count : counts) {
    if (position % between_looks == 0) parallel::require_not_cancelled(on);
    next = std::fill_n(next, count, position++);
  }
  return made;
}

}  // namespace

expr repeat(const expr& a, const expr& counts, index_t axis) {
  return allocating([&] {
    const index_t along = normalize_axis(axis, a.rank());
    require_counts(counts, a.shape(along));
    const tensor held = eval(astype(counts, dtype::int64));
    const std::span<const std::int64_t> all{reinterpret_cast<const std::int64_t*>(held.data()),
                                            static_cast<std::size_t>(held.size())};
    if (all.size() == 1) return repeat(a, index_t{all.front()}, along);
    const index_t sum = sum_of(all);
    dims shape = a.shape();
    shape[along] = sum;
    element_count(shape);  // throws if there are too many
    if (sum == 0) return a.narrow(along, 0, 0);
    return take(a, repeated_positions(all, sum, executor::current()), along);
  });
}

expr take(const expr& a, const expr& indices, std::optional<index_t> axis) {
  return allocating([&] {
    if (!axis && a.rank() > 1 && is_read_from_tiles(a, indices.size()))
      return indexed(a, indices.shape(), {position_of_axis{.index = 0}},
                     {as_positions(indices, "take")});
    if (!axis) return take(a.ravel(), indices, 0);
    const index_t along = normalize_axis(*axis, a.rank());
    const index_t depth = indices.rank();
    dims shape;
    std::vector<position_of_axis> axes;
    for (index_t k = 0; k < a.rank(); ++k) {
      if (k == along) {
        axes.push_back({.index = 0});
        for (const index_t extent : indices.shape()) shape.push_back(extent);
      } else {
        axes.push_back({.axis = k < along ? k : k + depth - 1});
        shape.push_back(a.shape(k));
      }
    }
    const expr positions = as_positions(indices, "take");
    return indexed(a, shape, std::move(axes), {with_axes_behind(positions, a.rank() - along - 1)});
  });
}

expr take_along_axis(const expr& a, const expr& indices, index_t axis) {
  return allocating([&] {
    const index_t along = normalize_axis(axis, a.rank());
    if (indices.rank() != a.rank())
      throw error(errc::invalid_argument, "take_along_axis needs indices of the operand's rank",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(indices.shape())});
    dims others = a.shape(), own = indices.shape();
    others[along] = own[along] = 1;
    dims shape = broadcast_shapes(others, own);
    shape[along] = indices.shape(along);
    std::vector<position_of_axis> axes;
    for (index_t k = 0; k < a.rank(); ++k) {
      if (k == along) axes.push_back({.index = 0});
      else if (a.shape(k) == 1) axes.push_back({});
      else axes.push_back({.axis = k});
    }
    return indexed(a, shape, std::move(axes), {as_positions(indices, "take_along_axis")});
  });
}

expr gather(const expr& a, index_t axis, const expr& indices) {
  return allocating([&] {
    const index_t along = normalize_axis(axis, a.rank());
    const dims& shape = indices.shape();
    require_not_longer(shape, a.shape(), along, "gather", "operand");
    std::vector<position_of_axis> axes;
    for (index_t k = 0; k < a.rank(); ++k)
      axes.push_back(k == along ? position_of_axis{.index = 0} : position_of_axis{.axis = k});
    return indexed(a, shape, std::move(axes), {as_positions(indices, "gather")});
  });
}

expr gather_nd(const expr& a, const expr& indices) {
  return allocating([&] {
    const index_t depth = indices.rank() - 1;
    const index_t coordinates = depth < 0 ? 0 : indices.shape(depth);
    if (depth < 0 || coordinates > a.rank())
      throw error(errc::invalid_argument,
                  "gather_nd needs at most as many coordinates as the operand has axes",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(indices.shape())});
    dims shape = indices.shape();
    shape.erase(depth);
    std::vector<position_of_axis> axes;
    for (index_t k = 0; k < a.rank(); ++k) {
      if (k < coordinates) {
        axes.push_back({.index = k});
      } else {
        axes.push_back({.axis = shape.size()});
        shape.push_back(a.shape(k));
      }
    }
    const expr positions = as_positions(indices, "gather_nd");
    std::vector<expr> columns;
    for (index_t k = 0; k < coordinates; ++k)
      columns.push_back(with_axes_behind(positions.select(depth, k), a.rank() - coordinates));
    return indexed(a, shape, std::move(axes), columns);
  });
}

}  // namespace shale
