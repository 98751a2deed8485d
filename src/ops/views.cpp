#include "ops/views.hpp"

#include <map>

namespace shale::ops {

using namespace detail;

namespace {

// A view copies the graph that it is pushed through, so that `x = x.flip(axes) + x` doubles it each
// time. Larger ones are staged.
constexpr std::size_t most_viewed_nodes = 2000;

// Pushes one map down to the leaves; what the graph shares stays shared.
class view_maker {
 public:
  explicit view_maker(const axis_map& map) : map_(map) {}

  node_ref view(const node_ref& of) {
    if (const auto known = made_.find(of.get()); known != made_.end()) return known->second;
    node_ref made = std::visit(pusher{of, map_, *this}, of->what);
    made_.emplace(of.get(), made);
    return made;
  }

 private:
  struct pusher {
    const node_ref& of;
    const axis_map& map;
    view_maker& maker;

    node_ref operator()(const tensor_leaf& leaf) const {
      const layout which = map.applied_to(leaf.values.geometry());
      return make_node(of->type, map.shape,
                       tensor_leaf{tensor(leaf.values.storage(), of->type, which)});
    }
    node_ref operator()(const source_leaf& leaf) const {
      return make_node(of->type, map.shape, source_leaf{leaf.source, map.after(leaf.map)});
    }
    node_ref operator()(const constant_leaf& leaf) const {
      return make_constant(leaf.value, map.shape, of->type, false);
    }
    node_ref operator()(range_leaf leaf) const {
      leaf.map = map.after(leaf.map);
      return make_node(of->type, map.shape, std::move(leaf));
    }
    node_ref operator()(gather_leaf leaf) const {
      leaf.map = map.after(leaf.map);
      return make_node(of->type, map.shape, std::move(leaf));
    }
    node_ref operator()(concat_leaf leaf) const {
      leaf.map = map.after(leaf.map);
      return make_node(of->type, map.shape, std::move(leaf));
    }
    node_ref operator()(const operation_node& operation) const {
      operation_node viewed{operation.which, {}};
      for (const auto& input : operation.inputs) viewed.inputs.push_back(maker.view(input));
      return make_node(of->type, map.shape, std::move(viewed));
    }
    node_ref operator()(const cast_node& cast) const {
      return make_node(of->type, map.shape, cast_node{maker.view(cast.input)});
    }
    node_ref operator()(const staged_leaf& leaf) const {
      return make_node(of->type, map.shape, staged_leaf{leaf.from, map.after(leaf.map)});
    }
  };

  const axis_map& map_;
  std::map<const node*, node_ref> made_;
};

using reshaped_nodes = std::map<const node*, node_ref>;

node_ref try_reshape(const node_ref& of, const dims& shape, reshaped_nodes& known);

// The reshaped node if every leaf can be viewed so; else null.
node_ref reshape_once(const node_ref& of, const dims& shape, reshaped_nodes& known) {
  if (of->shape == shape) return of;
  if (const auto* leaf = std::get_if<tensor_leaf>(&of->what)) {
    const auto which = leaf->values.geometry().view(shape);
    if (!which) return nullptr;
    return make_node(of->type, shape,
                     tensor_leaf{tensor(leaf->values.storage(), of->type, *which)});
  }
  if (const auto* leaf = std::get_if<constant_leaf>(&of->what))
    return make_constant(leaf->value, shape, of->type, false);
  if (const auto* operation = std::get_if<operation_node>(&of->what)) {
    operation_node reshaped{operation->which, {}};
    for (const auto& input : operation->inputs) {
      auto viewed = try_reshape(input, shape, known);
      if (!viewed) return nullptr;
      reshaped.inputs.push_back(std::move(viewed));
    }
    return make_node(of->type, shape, std::move(reshaped));
  }
  if (const auto* cast = std::get_if<cast_node>(&of->what)) {
    auto viewed = try_reshape(cast->input, shape, known);
    return viewed ? make_node(of->type, shape, cast_node{std::move(viewed)}) : nullptr;
  }
  // Other leaves are seen through maps: axes of length 1 may come and go, nothing else.
  dims kept_old, kept_new;
  for (const index_t extent : of->shape)
    if (extent != 1) kept_old.push_back(extent);
  for (const index_t extent : shape)
    if (extent != 1) kept_new.push_back(extent);
  if (!(kept_old == kept_new)) return nullptr;
  axis_map map = axis_map::identity(of->shape);
  for (index_t axis = map.rank() - 1; axis >= 0; --axis)
    if (map.shape[axis] == 1) map = map.squeeze(axis);
  for (index_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] == 1) map = map.unsqueeze(axis);
  return make_view(of, map);
}

node_ref try_reshape(const node_ref& of, const dims& shape, reshaped_nodes& known) {
  if (const auto done = known.find(of.get()); done != known.end()) return done->second;
  node_ref reshaped = reshape_once(of, shape, known);
  known.emplace(of.get(), reshaped);
  return reshaped;
}

}  // namespace

node_ref make_view(const node_ref& of, const axis_map& map) {
  const std::vector<node_ref> order = post_order(of);
  view_maker maker(map);
  if (order.size() > most_viewed_nodes) return maker.view(make_staged(of));
  for (const auto& each : order) maker.view(each);
  return maker.view(of);
}

node_ref make_reshape(const node_ref& of, const dims& wanted) {
  const dims shape = infer_shape(wanted, element_count(of->shape));
  reshaped_nodes known;
  const std::vector<node_ref> order = post_order(of);
  bool possible = order.size() <= most_viewed_nodes;
  for (const auto& each : order) possible = possible && try_reshape(each, shape, known) != nullptr;
  if (possible) return try_reshape(of, shape, known);
  // Staged row-major; then any shape is a view of it.
  auto from = std::make_shared<const stage>(stage{.input = of, .shape = shape, .type = of->type});
  return make_node(of->type, shape, staged_leaf{std::move(from), axis_map::identity(shape)});
}

}  // namespace shale::ops
