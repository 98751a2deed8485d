#include "ops/graph/views.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "ops/graph/nested_source.hpp"
#include "shale/error.hpp"

namespace shale::ops {

using namespace detail;

namespace {

// Whether a map keeps all axes of its input, and steps along each by 1.
bool only_narrows(const axis_map& map, index_t input_rank) {
  bool narrows = map.rank() == input_rank;
  for (index_t axis = 0; narrows && axis < input_rank; ++axis)
    narrows = map.from[axis] == axis && (map.step[axis] == 1 || map.shape[axis] <= 1);
  return narrows;
}

// Whether a map shows fewer elements of its input than there are.
bool leaves_elements_out(const axis_map& map, const dims& shape) {
  for (index_t input_axis = 0; input_axis < shape.size(); ++input_axis) {
    index_t shown = 1;
    for (index_t axis = 0; axis < map.rank(); ++axis)
      if (map.from[axis] == input_axis) shown = map.shape[axis];
    if (shown < shape[input_axis]) return true;
  }
  return false;
}

struct positions {
  index_t first;
  index_t count;
};

// The range of positions along an input axis, from the lowest to the highest one that the view
// reaches. The view is not empty.
positions touched(const axis_map& map, index_t input_axis) {
  positions result{map.base[input_axis], 1};
  for (index_t axis = 0; axis < map.rank(); ++axis) {
    if (map.from[axis] != input_axis) continue;
    const index_t distance = (map.shape[axis] - 1) * map.step[axis];
    result.first += std::min<index_t>(distance, 0);
    result.count += std::abs(distance);
  }
  return result;
}

// Pushes one map down to the leaves. A node that is reached by several paths is copied once.
class view_maker {
 public:
  explicit view_maker(const axis_map& map) : map_(map) {}

  node_ref view(const node_ref& value) {
    if (const auto known = made_.find(value.get()); known != made_.end()) return known->second;
    node_ref made = std::visit(pusher{value, map_, *this}, value->content);
    made_.emplace(value.get(), made);
    return made;
  }

 private:
  struct pusher {
    const node_ref& value;
    const axis_map& map;
    view_maker& maker;

    node_ref operator()(const tensor_leaf& leaf) const {
      const layout arrangement = map.applied_to(leaf.values.layout());
      return make_node(value->type, map.shape,
                       tensor_leaf{tensor(leaf.values.storage(), value->type, arrangement)});
    }
    node_ref operator()(const source_leaf& leaf) const {
      return make_node(value->type, map.shape, source_leaf{leaf.source, map.after(*leaf.map)});
    }
    node_ref operator()(const constant_leaf& leaf) const {
      return make_constant(leaf.value, map.shape, value->type, false);
    }
    node_ref operator()(range_leaf leaf) const {
      leaf.map = map.after(*leaf.map);
      return make_node(value->type, map.shape, std::move(leaf));
    }
    node_ref operator()(random_leaf leaf) const {
      leaf.arrangement = map.applied_to(*leaf.arrangement);
      return make_node(value->type, map.shape, std::move(leaf));
    }
    node_ref operator()(repeated_leaf leaf) const {
      leaf.map = map.after(*leaf.map);
      return make_node(value->type, map.shape, std::move(leaf));
    }
    node_ref operator()(concat_leaf leaf) const {
      leaf.map = map.after(*leaf.map);
      return make_node(value->type, map.shape, std::move(leaf));
    }
    node_ref operator()(indexed_leaf leaf) const {
      leaf.map = map.after(*leaf.map);
      return make_node(value->type, map.shape, std::move(leaf));
    }
    node_ref operator()(const window_leaf& leaf) const {
      if (const auto narrowed = map.after(*leaf.map); only_narrows(narrowed, leaf.before.size()))
        return window(leaf, narrowed);
      if (element_count(map.shape) == 0)
        return make_constant(scalar(0), map.shape, value->type, false);
      // The part that the view touches is computed once.
      axis_map part = axis_map::identity(value->shape), view_of_part = map;
      for (index_t axis = 0; axis < part.rank(); ++axis) {
        const auto [first, count] = touched(map, axis);
        part = part.narrow(axis, first, count);
        view_of_part.base[axis] -= first;
      }
      auto from = std::make_shared<const stage>(stage{
          .input = window(leaf, part.after(*leaf.map)), .shape = part.shape, .type = value->type});
      return make_node(value->type, map.shape,
                       staged_leaf{std::move(from), std::move(view_of_part)});
    }
    node_ref operator()(const operation_node& operation) const {
      operation_node viewed{operation.op, {}};
      for (const auto& input : operation.inputs) viewed.inputs.push_back(maker.view(input));
      return make_node(value->type, map.shape, std::move(viewed));
    }
    node_ref operator()(const cast_node& cast) const {
      return make_node(value->type, map.shape, cast_node{maker.view(cast.input)});
    }
    node_ref operator()(const staged_leaf& leaf) const {
      axis_map seen = leaf.map ? map.after(**leaf.map) : map;
      const bool of_tiles =
          !leaf.under && read_from_tiles(*leaf.from) && leaf.from->shape == leaf.from->input->shape;
      if (of_tiles && leaves_elements_out(seen, leaf.from->shape)) return read_in_part(leaf, seen);
      return make_node(value->type, map.shape, staged_leaf{leaf.from, std::move(seen), leaf.under});
    }

    // The elements that the view shows become a stage of their own, so that no other tile is loaded
    // and no other index is looked at. Axes along which the view repeats elements are axes of the
    // result only.
    node_ref read_in_part(const staged_leaf& leaf, const axis_map& seen) const {
      axis_map part{.base = seen.base, .shape = {}, .from = {}, .step = {}};
      axis_map view = seen;
      view.base = {};
      for (index_t axis = 0; axis < seen.rank(); ++axis) {
        if (seen.from[axis] < 0) continue;
        view.from[axis] = part.rank();
        view.step[axis] = 1;
        view.base.push_back(0);
        part.shape.push_back(seen.shape[axis]);
        part.from.push_back(seen.from[axis]);
        part.step.push_back(seen.step[axis]);
      }
      auto from = std::make_shared<const stage>(stage{
          .input = make_view(leaf.from->input, part), .shape = part.shape, .type = value->type});
      staged_leaf made{std::move(from)};
      if (view != axis_map::identity(part.shape)) made.map = std::move(view);
      return make_node(value->type, seen.shape, std::move(made));
    }

    node_ref window(window_leaf leaf, const axis_map& seen) const {
      leaf.map = seen;
      return make_node(value->type, seen.shape, std::move(leaf));
    }
  };

  const axis_map& map_;
  std::map<const node*, node_ref> made_;
};

// Pushes a change of layouts that an axis map cannot express down to the leaves.
class relayout {
 public:
  /// Returns nothing if strides cannot express the new layout.
  using of_layout = std::function<std::optional<layout>(const layout&)>;
  using of_leaf = std::function<node_ref(const node_ref&)>;

  /// `shape` is the shape after the change. `seen_through_maps` makes the views of leaves that are
  /// neither tensors nor random numbers nor constants.
  relayout(const dims& shape, of_layout change, of_leaf seen_through_maps)
      : shape_(shape), change_(std::move(change)), view_leaf_(std::move(seen_through_maps)) {}

  /// The changed node, or null if some leaf cannot be changed. Call it for inputs before the nodes
  /// that read them.
  node_ref changed(const node_ref& value) {
    if (const auto done = known_.find(value.get()); done != known_.end()) return done->second;
    node_ref made = changed_once(value);
    known_.emplace(value.get(), made);
    return made;
  }

 private:
  node_ref changed_once(const node_ref& value) {
    if (const auto* leaf = std::get_if<tensor_leaf>(&value->content)) {
      const auto arrangement = change_(leaf->values.layout());
      if (!arrangement) return nullptr;
      return make_node(value->type, shape_,
                       tensor_leaf{tensor(leaf->values.storage(), value->type, *arrangement)});
    }
    if (const auto* leaf = std::get_if<random_leaf>(&value->content)) {
      const auto arrangement = change_(*leaf->arrangement);
      if (!arrangement) return nullptr;
      return make_node(value->type, shape_,
                       random_leaf{leaf->kind, leaf->draw, leaf->first, *arrangement});
    }
    if (const auto* leaf = std::get_if<constant_leaf>(&value->content))
      return make_constant(leaf->value, shape_, value->type, false);
    if (const auto* operation = std::get_if<operation_node>(&value->content)) {
      operation_node made{operation->op, {}};
      for (const auto& input : operation->inputs) {
        auto viewed = changed(input);
        if (!viewed) return nullptr;
        made.inputs.push_back(std::move(viewed));
      }
      return make_node(value->type, shape_, std::move(made));
    }
    if (const auto* cast = std::get_if<cast_node>(&value->content)) {
      auto viewed = changed(cast->input);
      return viewed ? make_node(value->type, shape_, cast_node{std::move(viewed)}) : nullptr;
    }
    return view_leaf_(value);
  }

  const dims shape_;
  const of_layout change_;
  const of_leaf view_leaf_;
  std::map<const node*, node_ref> known_;
};

// Applies a change to a node. Returns null if a leaf cannot be changed, or if the graph is too
// large to copy.
node_ref try_change(const node_ref& value, relayout change) {
  const std::vector<node_ref> order = post_order(value);
  if (order.size() > viewed_nodes_max) return nullptr;
  for (const auto& input : order)
    if (!change.changed(input)) return nullptr;
  return change.changed(value);
}

// Reshapes a leaf by an axis map, which can only add and remove axes of length 1. Returns null if
// the shapes differ in more.
node_ref with_ones_moved(const node_ref& value, const dims& shape) {
  dims kept_old, kept_new, ones;
  for (index_t axis = 0; axis < value->shape.size(); ++axis)
    if (value->shape[axis] == 1) ones.push_back(axis);
    else kept_old.push_back(value->shape[axis]);
  for (const index_t extent : shape)
    if (extent != 1) kept_new.push_back(extent);
  if (!(kept_old == kept_new)) return nullptr;
  axis_map map = axis_map::identity(value->shape).squeeze(ones);
  for (index_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] == 1) map = map.expand_dims(axis);
  return make_view(value, map);
}

// The layout of a leaf in the result of its stage. That is a row-major tensor, so it is known
// before it is computed.
layout layout_of(const staged_leaf& leaf) {
  const layout whole = leaf.under ? **leaf.under : layout(leaf.from->shape);
  return leaf.map ? (*leaf.map)->applied_to(whole) : whole;
}

node_ref try_reshape(const node_ref& value, const dims& shape) {
  if (value->shape == shape) return value;
  const auto view_leaf = [&](const node_ref& leaf) {
    if (auto moved = with_ones_moved(leaf, shape)) return moved;
    const auto* staged = std::get_if<staged_leaf>(&leaf->content);
    const auto viewed = staged ? layout_of(*staged).view(shape) : std::nullopt;
    return viewed ? make_node(leaf->type, shape, staged_leaf{staged->from, std::nullopt, *viewed})
                  : node_ref();
  };
  const auto view_layout = [&](const layout& arrangement) { return arrangement.view(shape); };
  return try_change(value, relayout(shape, view_layout, view_leaf));
}

}  // namespace

node_ref make_view(const node_ref& value, const axis_map& map) {
  const std::vector<node_ref> order = post_order(value);
  view_maker maker(map);
  if (order.size() > viewed_nodes_max) return maker.view(make_staged(value));
  for (const auto& input : order) maker.view(input);
  return maker.view(value);
}

node_ref make_part(const node_ref& value, const region& box) {
  if (box.shape == value->shape) return value;
  axis_map map = axis_map::identity(value->shape);
  for (index_t axis = 0; axis < box.shape.size(); ++axis)
    map = map.narrow(axis, box.start[axis], box.shape[axis]);
  return make_view(value, map);
}

node_ref make_operand_of_parts(const node_ref& value) {
  const std::vector<node_ref> order = post_order(value);
  const bool is_large = order.size() > viewed_nodes_max;
  const bool is_deep = deepest_source(order) >= nested_depth_max;
  return is_large || is_deep ? make_staged(value) : value;
}

node_ref make_reshape(const node_ref& value, const dims& wanted) {
  const dims shape = infer_shape(wanted, element_count(value->shape));
  if (auto viewed = try_reshape(value, shape)) return viewed;
  // The staged value is row-major, so it can be viewed in any shape.
  auto from =
      std::make_shared<const stage>(stage{.input = value, .shape = shape, .type = value->type});
  return make_node(value->type, shape, staged_leaf{std::move(from)});
}

node_ref make_reshape_view(const node_ref& value, const dims& wanted) {
  const dims shape = infer_shape(wanted, element_count(value->shape));
  if (auto viewed = try_reshape(value, shape)) return viewed;
  throw error(errc::invalid_argument, "no view has that shape",
              {"shape " + to_string(value->shape) + " as " + to_string(shape),
               "use reshape, which computes the value into memory if necessary"});
}

node_ref make_relayout(const node_ref& value, const std::function<layout(const layout&)>& change) {
  const layout row_major(value->shape);
  const layout after = change(row_major);
  // Leaves that are neither tensors nor results of stages have no layout: the whole node is staged.
  const auto view_stage = [&](const node_ref& leaf) {
    const auto* staged = std::get_if<staged_leaf>(&leaf->content);
    return staged ? make_node(leaf->type, after.shape(),
                              staged_leaf{staged->from, std::nullopt, change(layout_of(*staged))})
                  : node_ref();
  };
  if (auto viewed = try_change(value, relayout(after.shape(), change, view_stage))) return viewed;
  auto from = std::make_shared<const stage>(
      stage{.input = value, .shape = value->shape, .type = value->type});
  return make_node(value->type, after.shape(), staged_leaf{std::move(from), std::nullopt, after});
}

}  // namespace shale::ops
