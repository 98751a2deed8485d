#include "shale/expr.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "ops/graph.hpp"
#include "ops/views.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;

namespace {

expr unary(operation which, const expr& a) { return expr(make_operation(which, {a.node()})); }
expr binary(operation which, const expr& a, const expr& b) {
  return expr(make_operation(which, {a.node(), b.node()}));
}
expr viewed(const expr& of, const axis_map& map) { return expr(make_view(of.node(), map)); }
axis_map identity(const expr& of) { return axis_map::identity(of.shape()); }

expr reduced(reduction which, const expr& a, const axes_option& axes, keep_axes keep,
             double parameter = 0) {
  dims all;
  for (index_t axis = 0; axis < a.rank(); ++axis) all.push_back(axis);
  return expr(
      make_reduction(a.node(), which, axes.value_or(all), keep == keep_axes::yes, parameter));
}

// The numbers of a range as one dtype.
dtype range_dtype(const scalar& a, const scalar& b, const scalar& c) {
  for (const auto& number : {a, b, c})
    if (kind(number.type()) == dtype_kind::complex)
      throw error(errc::invalid_argument, "arange: complex numbers have no order");
  for (const auto& number : {a, b, c})
    if (kind(number.type()) == dtype_kind::floating) return dtype::float64;
  return dtype::int64;
}

}  // namespace

expr::expr(const tensor& values) : node_(make_leaf(values)) {}
expr::expr(std::shared_ptr<const tile_source> source) : node_(make_leaf(std::move(source))) {}
expr::expr(const scalar& value) : node_() {
  // Every C++ number binds late; the widest type of its kind until then.
  shale::dtype type = value.type();
  switch (kind(type)) {
    case dtype_kind::boolean:
      break;
    case dtype_kind::signed_integer:
      type = dtype::int64;
      break;
    case dtype_kind::unsigned_integer:
      type = value.fits(dtype::int64) ? dtype::int64 : dtype::uint64;
      break;
    case dtype_kind::floating:
      type = dtype::float64;
      break;
    case dtype_kind::complex:
      type = dtype::complex128;
      break;
  }
  const scalar wide = visit(type, computing_types{},
                            [&]<class T>(std::type_identity<T>) { return scalar(value.as<T>()); });
  node_ = make_constant(wide, {}, type, true);
}

shale::dtype expr::dtype() const noexcept { return node_->type; }
const dims& expr::shape() const noexcept { return node_->shape; }
index_t expr::size() const { return element_count(node_->shape); }

expr expr::narrow(index_t axis, index_t start, index_t length) const {
  return viewed(*this, identity(*this).narrow(axis, start, length));
}
expr expr::select(index_t axis, index_t index) const {
  return viewed(*this, identity(*this).select(axis, index));
}
expr expr::sliced(index_t axis, const slice& which) const {
  return viewed(*this, identity(*this).sliced(axis, which));
}
expr expr::index(std::span<const index_entry> entries) const {
  return viewed(*this, identity(*this).index(entries));
}
expr expr::transpose(index_t axis_a, index_t axis_b) const {
  dims axes;
  for (index_t axis = 0; axis < rank(); ++axis) axes.push_back(axis);
  std::swap(axes[normalize_axis(axis_a, rank())], axes[normalize_axis(axis_b, rank())]);
  return permute_dims(axes);
}
expr expr::permute_dims(const dims& axes) const {
  return viewed(*this, identity(*this).permute_dims(axes));
}
expr expr::unsqueeze(index_t axis) const { return viewed(*this, identity(*this).unsqueeze(axis)); }
expr expr::squeeze(index_t axis) const { return viewed(*this, identity(*this).squeeze(axis)); }
expr expr::squeeze() const {
  axis_map map = identity(*this);
  for (index_t axis = rank() - 1; axis >= 0; --axis)
    if (shape()[axis] == 1) map = map.squeeze(axis);
  return viewed(*this, map);
}
expr expr::expand(const dims& shape) const { return viewed(*this, identity(*this).expand(shape)); }
expr expr::flip(const dims& axes) const { return viewed(*this, identity(*this).flip(axes)); }
expr expr::reshape(const dims& shape) const { return expr(make_reshape(node_, shape)); }

expr operator+(const expr& a, const expr& b) { return binary(operation::add, a, b); }
expr operator-(const expr& a, const expr& b) { return binary(operation::subtract, a, b); }
expr operator*(const expr& a, const expr& b) { return binary(operation::multiply, a, b); }
expr operator/(const expr& a, const expr& b) { return binary(operation::divide, a, b); }
expr operator%(const expr& a, const expr& b) { return binary(operation::remainder, a, b); }
expr operator-(const expr& a) { return unary(operation::negative, a); }
expr operator==(const expr& a, const expr& b) { return binary(operation::equal, a, b); }
expr operator!=(const expr& a, const expr& b) { return binary(operation::not_equal, a, b); }
expr operator<(const expr& a, const expr& b) { return binary(operation::less, a, b); }
expr operator<=(const expr& a, const expr& b) { return binary(operation::less_equal, a, b); }
expr operator>(const expr& a, const expr& b) { return binary(operation::greater, a, b); }
expr operator>=(const expr& a, const expr& b) { return binary(operation::greater_equal, a, b); }
expr operator&(const expr& a, const expr& b) { return binary(operation::bit_and, a, b); }
expr operator|(const expr& a, const expr& b) { return binary(operation::bit_or, a, b); }
expr operator^(const expr& a, const expr& b) { return binary(operation::bit_xor, a, b); }
expr operator~(const expr& a) { return unary(operation::bit_not, a); }

expr floor_divide(const expr& a, const expr& b) { return binary(operation::floor_divide, a, b); }
expr pow(const expr& a, const expr& b) { return binary(operation::power, a, b); }
expr atan2(const expr& y, const expr& x) { return binary(operation::atan2, y, x); }
expr hypot(const expr& a, const expr& b) { return binary(operation::hypotenuse, a, b); }
expr minimum(const expr& a, const expr& b) { return binary(operation::minimum, a, b); }
expr maximum(const expr& a, const expr& b) { return binary(operation::maximum, a, b); }

expr abs(const expr& a) { return unary(operation::absolute, a); }
expr square(const expr& a) { return unary(operation::square, a); }
expr sign(const expr& a) { return unary(operation::sign, a); }
expr sqrt(const expr& a) { return unary(operation::square_root, a); }
expr exp(const expr& a) { return unary(operation::exponential, a); }
expr log(const expr& a) { return unary(operation::logarithm, a); }
expr log2(const expr& a) { return unary(operation::logarithm_2, a); }
expr log10(const expr& a) { return unary(operation::logarithm_10, a); }
expr sin(const expr& a) { return unary(operation::sine, a); }
expr cos(const expr& a) { return unary(operation::cosine, a); }
expr tan(const expr& a) { return unary(operation::tangent, a); }
expr asin(const expr& a) { return unary(operation::arc_sine, a); }
expr acos(const expr& a) { return unary(operation::arc_cosine, a); }
expr atan(const expr& a) { return unary(operation::arc_tangent, a); }
expr sinh(const expr& a) { return unary(operation::hyperbolic_sine, a); }
expr cosh(const expr& a) { return unary(operation::hyperbolic_cosine, a); }
expr tanh(const expr& a) { return unary(operation::hyperbolic_tangent, a); }
expr floor(const expr& a) { return unary(operation::floor, a); }
expr ceil(const expr& a) { return unary(operation::ceiling, a); }
expr trunc(const expr& a) { return unary(operation::truncate, a); }
expr round(const expr& a) { return unary(operation::round, a); }
expr isnan(const expr& a) {
  if (kind(a.dtype()) != dtype_kind::floating && kind(a.dtype()) != dtype_kind::complex)
    return full(a.shape(), false);
  return unary(operation::is_nan, a);
}
expr isfinite(const expr& a) {
  if (kind(a.dtype()) != dtype_kind::floating && kind(a.dtype()) != dtype_kind::complex)
    return full(a.shape(), true);
  return unary(operation::is_finite, a);
}
expr logical_not(const expr& a) { return unary(operation::logical_not, a); }
expr clamp(const expr& a, const expr& low, const expr& high) {
  return minimum(maximum(a, low), high);
}
expr where(const expr& condition, const expr& a, const expr& b) {
  return expr(make_operation(operation::select, {condition.node(), a.node(), b.node()}));
}
expr cast(const expr& a, dtype to) { return expr(make_cast(a.node(), to)); }

expr arange(scalar start, scalar stop, scalar step, std::optional<dtype> type) {
  const dtype natural = range_dtype(start, stop, step);
  if (step == scalar(0)) throw error(errc::invalid_argument, "arange: the step is 0");
  index_t count = 0;
  const auto too_long = [&] {
    throw error(errc::invalid_argument, "arange: too many elements",
                {start.to_string() + " to " + stop.to_string() + " by " + step.to_string()});
  };
  if (natural == dtype::int64) {
    const auto first = start.to<std::int64_t>();
    const auto last = stop.to<std::int64_t>();
    const auto by = step.to<std::int64_t>();
    if (by > 0 ? first < last : first > last) {
      // Unsigned: a range may be as long as two of the largest numbers.
      const auto magnitude = [](std::int64_t from, std::int64_t to) {
        return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
      };
      const std::uint64_t distance = by > 0 ? magnitude(first, last) : magnitude(last, first);
      const std::uint64_t steps =
          (distance - 1) / (by > 0 ? magnitude(0, by) : magnitude(by, 0)) + 1;
      if (steps > static_cast<std::uint64_t>(std::numeric_limits<index_t>::max())) too_long();
      count = static_cast<index_t>(steps);
    }
  } else {
    const double distance = stop.as<double>() - start.as<double>();
    const double steps = distance / step.as<double>();
    if (!(std::ceil(steps) < 0x1p62)) too_long();  // NaN too
    // A step beyond what a quotient can tell from infinity still leaves the first number.
    const bool only_first = steps == 0 && distance != 0 && !std::signbit(steps);
    count = only_first ? 1 : steps > 0 ? static_cast<index_t>(std::ceil(steps)) : 0;
  }
  // One number is never stepped from, and 0 times an infinite step is no number.
  if (count <= 1) step = scalar(0);
  const dims shape{count};
  const auto widened = [&](const scalar& number) {
    return natural == dtype::int64 ? scalar(number.as<std::int64_t>())
                                   : scalar(number.as<double>());
  };
  auto made = std::make_shared<const detail::node>(
      natural, shape, detail::range_leaf{widened(start), widened(step), axis_map::identity(shape)});
  return type ? cast(expr(std::move(made)), *type) : expr(std::move(made));
}
expr arange(scalar stop) {
  return arange(kind(stop.type()) == dtype_kind::floating ? scalar(0.0) : scalar(0), stop);
}

expr full(const dims& shape, const scalar& value, std::optional<dtype> type) {
  element_count(shape);  // refuses what is no shape
  const expr number(value);
  const dtype wanted = type.value_or(number.dtype());
  const expr typed = cast(number, wanted);
  return expr(make_constant(std::get<detail::constant_leaf>(typed.node()->what).value, shape,
                            wanted, false));
}

namespace {

expr gathered(const expr& a, const dims& shape, const dims& modulus, const dims& divisor) {
  if (const auto* constant = std::get_if<detail::constant_leaf>(&a.node()->what))
    return expr(make_constant(constant->value, shape, a.dtype(), false));
  auto input = make_staged(a.node());
  return expr(std::make_shared<const detail::node>(
      a.dtype(), shape,
      detail::gather_leaf{std::move(input), axis_map::identity(shape), modulus, divisor}));
}

index_t checked_extent(index_t extent, index_t times, const char* what) {
  const auto product = checked_mul(extent, times);
  if (times < 0 || !product)
    throw error(errc::invalid_argument, std::string(what) + ": repetitions out of range",
                {std::to_string(extent) + " x " + std::to_string(times)});
  return *product;
}

}  // namespace

expr tile(const expr& a, const dims& times) {
  expr base = a;
  while (base.rank() < times.size()) base = base.unsqueeze(0);
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
  if (parts.empty()) throw error(errc::invalid_argument, "concat: no parts");
  const index_t along = normalize_axis(axis, parts[0].rank());
  dims shape = parts[0].shape();
  dtype type = parts[0].dtype();
  shape[along] = 0;
  for (const auto& part : parts) {
    dims other = part.shape();
    if (other.size() == shape.size()) other[along] = shape[along];
    if (!(other == shape))
      throw error(errc::invalid_argument, "concat: parts differ off the axis",
                  {to_string(parts[0].shape()) + " and " + to_string(part.shape()) +
                   " along axis " + std::to_string(along)});
    const auto sum = checked_add(shape[along], part.shape()[along]);
    if (!sum) throw error(errc::invalid_argument, "concat: too many elements");
    shape[along] = *sum;
    type = promote(type, part.dtype());
  }
  detail::concat_leaf leaf{{}, {0}, along, axis_map::identity(shape)};
  for (const auto& part : parts) {
    leaf.pieces.push_back(make_staged(make_cast(part.node(), type)));
    leaf.starts.push_back(leaf.starts.back() + part.shape()[along]);
  }
  return expr(std::make_shared<const detail::node>(type, shape, std::move(leaf)));
}

expr matmul(const expr& a, const expr& b) { return expr(make_product(a.node(), b.node())); }

expr sum(const expr& a, const axes_option& axes, keep_axes keep) {
  return reduced(reduction::sum, a, axes, keep);
}
expr prod(const expr& a, const axes_option& axes, keep_axes keep) {
  return reduced(reduction::product, a, axes, keep);
}
expr mean(const expr& a, const axes_option& axes, keep_axes keep) {
  return reduced(reduction::mean, a, axes, keep);
}
expr var(const expr& a, const axes_option& axes, keep_axes keep, double correction) {
  return reduced(reduction::variance, a, axes, keep, correction);
}
expr stddev(const expr& a, const axes_option& axes, keep_axes keep, double correction) {
  return reduced(reduction::deviation, a, axes, keep, correction);
}
expr min(const expr& a, const axes_option& axes, keep_axes keep) {
  return reduced(reduction::minimum, a, axes, keep);
}
expr max(const expr& a, const axes_option& axes, keep_axes keep) {
  return reduced(reduction::maximum, a, axes, keep);
}
expr any(const expr& a, const axes_option& axes, keep_axes keep) {
  return reduced(reduction::any, a, axes, keep);
}
expr all(const expr& a, const axes_option& axes, keep_axes keep) {
  return reduced(reduction::all, a, axes, keep);
}
expr count_nonzero(const expr& a, const axes_option& axes, keep_axes keep) {
  return reduced(reduction::count_nonzero, a, axes, keep);
}

}  // namespace shale
