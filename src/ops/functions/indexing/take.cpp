#include "shale/take.hpp"

#include <string>
#include <utility>
#include <vector>

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/leaves/indices.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;
using detail::position_of_axis;

expr take(const expr& a, const expr& indices, std::optional<index_t> axis) {
  return allocating([&] {
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
