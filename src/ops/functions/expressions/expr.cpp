#include "shale/expr.hpp"

#include "core/allocating.hpp"
#include "core/held.hpp"
#include "ops/graph/graph.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/graph/views.hpp"
#include "shale/tile_source.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

expr viewed(const expr& value, const axis_map& map) {
  return allocating([&] { return expr_of(make_view(node_of(value), map)); });
}
axis_map identity(const expr& value) { return axis_map::identity(value.shape()); }

}  // namespace

const detail::node_ref& detail::node_access::node(const expr& value) {
  held(value.node_, "expression");
  return value.node_;
}

expr ops::operated(operation op, const expr& a) {
  return allocating([&] { return expr_of(make_operation(op, {node_of(a)})); });
}
expr ops::operated(operation op, const expr& a, const expr& b) {
  return allocating([&] { return expr_of(make_operation(op, {node_of(a), node_of(b)})); });
}

expr::expr(const tensor& values) : node_(allocating([&] { return make_leaf(values); })) {}
expr::expr(std::shared_ptr<const tile_source> source)
    : node_(allocating([&] { return make_leaf(std::move(source)); })) {}
expr::expr(const scalar& value) : node_() {
  // A C++ number is a weak constant: it takes the dtype of the tensor that it meets. Until then it
  // has the widest type of its kind.
  const shale::dtype type = constant_dtype(value);
  const scalar wide = visit(type, computing_types{},
                            [&]<class T>(std::type_identity<T>) { return scalar(value.as<T>()); });
  node_ = allocating([&] { return make_constant(wide, {}, type, true); });
}

shale::dtype expr::dtype() const { return node_of(*this)->type; }
const dims& expr::shape() const { return node_of(*this)->shape; }
index_t expr::shape(index_t axis) const { return shape()[normalize_axis(axis, rank())]; }
index_t expr::size() const { return element_count(shape()); }

expr expr::narrow(index_t axis, index_t start, index_t length) const {
  return viewed(*this, identity(*this).narrow(axis, start, length));
}
expr expr::select(index_t axis, index_t index) const {
  return viewed(*this, identity(*this).select(axis, index));
}
expr expr::sliced(index_t axis, const slice& range) const {
  return viewed(*this, identity(*this).sliced(axis, range));
}
expr expr::index(std::span<const index_entry> entries) const {
  return viewed(*this, identity(*this).index(entries));
}
expr expr::swapaxes(index_t axis_a, index_t axis_b) const {
  dims axes;
  for (index_t axis = 0; axis < rank(); ++axis) axes.push_back(axis);
  std::swap(axes[normalize_axis(axis_a, rank())], axes[normalize_axis(axis_b, rank())]);
  return permute_dims(axes);
}
expr expr::permute_dims(const dims& axes) const {
  return viewed(*this, identity(*this).permute_dims(axes));
}
expr expr::moveaxis(index_t from, index_t to) const {
  const index_t source = normalize_axis(from, rank());
  const index_t target = normalize_axis(to, rank());
  dims axes;
  for (index_t axis = 0; axis < rank(); ++axis)
    if (axis != source) axes.push_back(axis);
  axes.insert(target, source);
  return permute_dims(axes);
}
expr expr::expand_dims(index_t axis) const {
  return viewed(*this, identity(*this).expand_dims(axis));
}
expr expr::squeeze(index_t axis) const { return squeeze(dims{axis}); }
expr expr::squeeze(const dims& axes) const { return viewed(*this, identity(*this).squeeze(axes)); }
expr expr::squeeze() const {
  dims axes;
  for (index_t axis = 0; axis < rank(); ++axis)
    if (shape()[axis] == 1) axes.push_back(axis);
  return squeeze(axes);
}
expr expr::broadcast_to(const dims& shape) const {
  return viewed(*this, identity(*this).broadcast_to(shape));
}
expr expr::flip(const dims& axes) const { return viewed(*this, identity(*this).flip(axes)); }
expr expr::flip() const {
  dims axes;
  for (index_t axis = 0; axis < rank(); ++axis) axes.push_back(axis);
  return flip(axes);
}

expr expr::reshape(const dims& shape) const {
  return allocating([&] { return expr_of(make_reshape(node_of(*this), shape)); });
}
expr expr::view(const dims& shape) const {
  return allocating([&] { return expr_of(make_reshape_view(node_of(*this), shape)); });
}
expr expr::unfold(index_t axis, index_t size, index_t step) const {
  return allocating([&] {
    return expr_of(make_relayout(node_of(*this), [&](const layout& arrangement) {
      return arrangement.unfold(axis, size, step);
    }));
  });
}
expr expr::diagonal(index_t offset, index_t axis_a, index_t axis_b) const {
  return allocating([&] {
    return expr_of(make_relayout(node_of(*this), [&](const layout& arrangement) {
      return arrangement.diagonal(offset, axis_a, axis_b);
    }));
  });
}

expr operator+(const expr& a, const expr& b) { return operated(operation::add, a, b); }
expr operator-(const expr& a, const expr& b) { return operated(operation::subtract, a, b); }
expr operator*(const expr& a, const expr& b) { return operated(operation::multiply, a, b); }
expr operator/(const expr& a, const expr& b) { return operated(operation::divide, a, b); }
expr operator%(const expr& a, const expr& b) { return operated(operation::remainder, a, b); }
expr operator-(const expr& a) { return operated(operation::negative, a); }
expr operator==(const expr& a, const expr& b) { return operated(operation::equal, a, b); }
expr operator!=(const expr& a, const expr& b) { return operated(operation::not_equal, a, b); }
expr operator<(const expr& a, const expr& b) { return operated(operation::less, a, b); }
expr operator<=(const expr& a, const expr& b) { return operated(operation::less_equal, a, b); }
expr operator>(const expr& a, const expr& b) { return operated(operation::greater, a, b); }
expr operator>=(const expr& a, const expr& b) { return operated(operation::greater_equal, a, b); }
expr operator&(const expr& a, const expr& b) { return operated(operation::bit_and, a, b); }
expr operator|(const expr& a, const expr& b) { return operated(operation::bit_or, a, b); }
expr operator^(const expr& a, const expr& b) { return operated(operation::bit_xor, a, b); }
expr operator~(const expr& a) { return operated(operation::bit_not, a); }

}  // namespace shale
