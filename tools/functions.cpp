#include "functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace shale::tools {

namespace {

using on_array = expr (*)(const expr&);
using on_arrays = expr (*)(const expr&, const expr&);
using on_number = double (*)(double);
using reduction = expr (*)(const expr&, const axes_option&, keep_axes);

// Of a plain number, a plain number, which then adapts to the arrays it meets.
template <on_array array, on_number number>
value unary(arguments& from) {
  const value a = from.required("x");
  if (a.is_number()) return {number(to_double(a))};
  return {array(to_expr(a))};
}

template <on_array array>
value unary_array(arguments& from) {
  return {array(from.array("x"))};
}

template <on_arrays array>
value binary(arguments& from) {
  const expr a = from.array("x1");
  return {array(a, from.array("x2"))};
}

// Functions that are operators by another name.
template <char... symbol>
value operate(arguments& from) {
  constexpr char text[] = {symbol...};
  const value a = from.required("x1");
  return apply_binary({text, sizeof...(symbol)}, a, from.required("x2"));
}

template <reduction fold>
value reduce(arguments& from) {
  const expr a = from.array("a");
  const axes_option axes = from.axes("axis");
  const keep_axes keep = from.flag("keepdims", false) ? keep_axes::yes : keep_axes::no;
  return {fold(a, axes, keep)};
}

template <expr (*fold)(const expr&, const axes_option&, keep_axes, double)>
value reduce_moment(arguments& from) {
  const expr a = from.array("a");
  const axes_option axes = from.axes("axis");
  const keep_axes keep = from.flag("keepdims", false) ? keep_axes::yes : keep_axes::no;
  const std::optional<value> ddof = from.optional("ddof");
  const double correction = ddof ? to_double(*ddof) : from.real("correction", 0);
  return {fold(a, axes, keep, correction)};
}

// min(a, b) of C means minimum(a, b) of NumPy.
template <reduction fold>
value reduce_extremum(arguments& from) {
  if (from.positional_left() == 2) {
    arguments copy = from;
    copy.required("a");
    if (copy.required("axis").is<expr>())
      throw error(errc::invalid_argument,
                  fmt::format("{}: 'axis' cannot be an array", from.function()),
                  {"minimum(a, b) and maximum(a, b) compare two arrays"});
  }
  return reduce<fold>(from);
}

// Roundings of integers change nothing.
template <on_array array, on_number number>
value rounding(arguments& from) {
  const value a = from.required("x");
  if (a.is<double>()) return {number(a.as<double>())};
  return a.is_number() ? apply_unary("+", a) : value{array(to_expr(a))};
}

value absolute(arguments& from) {
  const value a = from.required("x");
  if (!a.is_number()) return {shale::abs(to_expr(a))};
  return std::signbit(to_double(a)) ? apply_unary("-", a) : apply_unary("+", a);
}

value square(arguments& from) {
  const value a = from.required("x");
  return a.is_number() ? apply_binary("*", a, a) : value{shale::square(to_expr(a))};
}

value sign(arguments& from) {
  const value a = from.required("x");
  if (!a.is_number()) return {shale::sign(to_expr(a))};
  const double number = to_double(a);
  if (a.is<double>()) return {number > 0 ? 1.0 : number < 0 ? -1.0 : number};
  return {std::int64_t{number > 0} - std::int64_t{number < 0}};
}

constexpr double degrees_per_radian = 180 / std::numbers::pi;
double to_degrees(double angle) { return angle * degrees_per_radian; }
double to_radians(double angle) { return angle * (std::numbers::pi / 180); }
expr array_to_degrees(const expr& angle) { return angle * degrees_per_radian; }
expr array_to_radians(const expr& angle) { return angle * (std::numbers::pi / 180); }

value clip(arguments& from) {
  const expr a = from.array("a");
  const std::optional<value> low = from.optional("a_min");
  const std::optional<value> high = from.optional("a_max");
  const bool has_low = low && !low->is<none_t>();
  const bool has_high = high && !high->is<none_t>();
  if (has_low && has_high) return {shale::clamp(a, to_expr(*low), to_expr(*high))};
  if (has_low) return {shale::maximum(a, to_expr(*low))};
  if (has_high) return {shale::minimum(a, to_expr(*high))};
  return {a};
}

value where(arguments& from) {
  const expr condition = from.array("condition");
  const expr a = from.array("x");
  return {shale::where(condition, a, from.array("y"))};
}

value astype(arguments& from) {
  const expr a = from.array("x");
  return {shale::cast(a, to_dtype(from.required("dtype"), "astype: 'dtype'"))};
}

value arange(arguments& from) {
  const scalar first = from.number("start");
  if (from.positional_left() == 0)
    return {
        shale::arange(scalar(std::int64_t{0}), first, scalar(std::int64_t{1}), from.type("dtype"))};
  const scalar stop = from.number("stop");
  scalar step(std::int64_t{1});
  if (from.positional_left() > 0) step = from.number("step");
  return {shale::arange(first, stop, step, from.type("dtype"))};
}

value full(arguments& from) {
  const dims shape = from.shape("shape");
  const scalar filled = from.number("fill_value");
  return {shale::full(shape, filled, from.type("dtype"))};
}

template <int filled>
value full_of(arguments& from) {
  const dims shape = from.shape("shape");
  return {shale::full(shape, scalar(filled), from.type("dtype").value_or(dtype::float64))};
}

template <int filled>
value full_like(arguments& from) {
  const expr a = from.array("a");
  return {shale::full(a.shape(), scalar(filled), from.type("dtype").value_or(a.dtype()))};
}

value tile(arguments& from) {
  const expr a = from.array("A");
  return {shale::tile(a, from.shape("reps"))};
}

value repeat(arguments& from) {
  expr a = from.array("a");
  const index_t times = from.index("repeats");
  const std::optional<value> axis = from.optional("axis");
  if (axis && !axis->is<none_t>())
    return {shale::repeat(a, times, to_index(*axis, "repeat: 'axis'"))};
  return {shale::repeat(a.reshape({-1}), times, 0)};
}

std::vector<expr> array_list(arguments& from) {
  const value list = from.required("arrays");
  if (!list.is<value::tuple>())
    throw error(errc::invalid_argument,
                fmt::format("{}: 'arrays' must be a tuple, as in (a, b), got {}", from.function(),
                            list.description()));
  std::vector<expr> parts;
  for (const value& each : list.as<value::tuple>().elements()) parts.push_back(to_expr(each));
  return parts;
}

value concatenate(arguments& from) {
  const std::vector<expr> parts = array_list(from);
  return {shale::concat(parts, from.index("axis", 0))};
}

value stack(arguments& from) {
  std::vector<expr> parts = array_list(from);
  index_t axis = from.index("axis", 0);
  for (expr& each : parts) {
    axis = normalize_axis(axis, each.rank() + 1);
    each = each.unsqueeze(axis);
  }
  return {shale::concat(parts, axis)};
}

value reshape(arguments& from) {
  const expr a = from.array("a");
  return {a.reshape(from.rest_or_shape("shape"))};
}

value ravel(arguments& from) { return {from.array("a").reshape({-1})}; }

value expand_dims(arguments& from) {
  const expr a = from.array("a");
  return {a.unsqueeze(from.index("axis"))};
}

value squeeze(arguments& from) {
  expr a = from.array("a");
  const std::optional<dims> axes = from.axes("axis");
  if (!axes) return {a.squeeze()};
  // From the back, so that the axes in front keep their numbers.
  dims sorted = *axes;
  for (index_t& axis : sorted) axis = normalize_axis(axis, a.rank());
  std::sort(sorted.begin(), sorted.end());
  for (index_t i = sorted.size(); i-- > 0;) a = a.squeeze(sorted[i]);
  return {a};
}

value transpose(arguments& from) {
  const expr a = from.array("a");
  if (from.positional_left() > 1) return {a.permute_dims(from.rest_or_shape("axes"))};
  std::optional<dims> axes = from.axes("axes");
  if (!axes) {
    axes = dims();
    for (index_t i = a.rank(); i-- > 0;) axes->push_back(i);
  }
  return {a.permute_dims(*axes)};
}

value swapaxes(arguments& from) {
  const expr a = from.array("a");
  const index_t first = from.index("axis1");
  return {a.transpose(first, from.index("axis2"))};
}

value moveaxis(arguments& from) {
  const expr a = from.array("a");
  const index_t source = normalize_axis(from.index("source"), a.rank());
  const index_t destination = normalize_axis(from.index("destination"), a.rank());
  dims axes;
  for (index_t i = 0; i < a.rank(); ++i)
    if (i != source) axes.push_back(i);
  axes.insert(destination, source);
  return {a.permute_dims(axes)};
}

value flip(arguments& from) {
  const expr a = from.array("m");
  std::optional<dims> axes = from.axes("axis");
  if (!axes) {
    axes = dims();
    for (index_t i = 0; i < a.rank(); ++i) axes->push_back(i);
  }
  return {a.flip(*axes)};
}

value broadcast_to(arguments& from) {
  const expr a = from.array("array");
  return {a.expand(from.shape("shape"))};
}

value matmul(arguments& from) {
  const expr a = from.array("x1");
  return {shale::matmul(a, from.array("x2"))};
}

// NumPy's: numbers multiply, and the axes of `b` before its last two come behind those of `a`
// instead of being matched with them.
value dot(arguments& from) {
  const expr a = from.array("a");
  const expr b = from.array("b");
  if (a.rank() == 0 || b.rank() == 0) return {a * b};
  if (a.rank() == 1 || b.rank() <= 2) return {shale::matmul(a, b)};
  expr spread = a;
  for (index_t axis = 2; axis < b.rank(); ++axis) spread = spread.unsqueeze(spread.rank() - 2);
  const expr product = shale::matmul(spread, b);
  dims axes;
  for (index_t axis = 0; axis < product.rank(); ++axis) axes.push_back(axis);
  axes.erase(product.rank() - 2);
  axes.insert(a.rank() - 2, product.rank() - 2);
  return {product.permute_dims(axes)};
}

value logical_not(arguments& from) { return {shale::logical_not(from.array("x"))}; }

value isinf(arguments& from) {
  const expr a = from.array("x");
  return {~(shale::isfinite(a) | shale::isnan(a))};
}

template <on_arrays array>
value logical(arguments& from) {
  const expr a = shale::cast(from.array("x1"), dtype::boolean);
  return {array(a, shale::cast(from.array("x2"), dtype::boolean))};
}

expr both(const expr& a, const expr& b) { return a & b; }
expr either(const expr& a, const expr& b) { return a | b; }
expr one_of(const expr& a, const expr& b) { return a ^ b; }

std::vector<function> make_functions() {
  return {
      {"sqrt", unary<shale::sqrt, std::sqrt>, "sqrt(x)"},
      {"exp", unary<shale::exp, std::exp>, "exp(x)"},
      {"log", unary<shale::log, std::log>, "log(x)"},
      {"log2", unary<shale::log2, std::log2>, "log2(x)"},
      {"log10", unary<shale::log10, std::log10>, "log10(x)"},
      {"sin", unary<shale::sin, std::sin>, "sin(x)"},
      {"cos", unary<shale::cos, std::cos>, "cos(x)"},
      {"tan", unary<shale::tan, std::tan>, "tan(x)"},
      {"arcsin", unary<shale::asin, std::asin>, "arcsin(x)"},
      {"asin", unary<shale::asin, std::asin>, "asin(x)"},
      {"arccos", unary<shale::acos, std::acos>, "arccos(x)"},
      {"acos", unary<shale::acos, std::acos>, "acos(x)"},
      {"arctan", unary<shale::atan, std::atan>, "arctan(x)"},
      {"atan", unary<shale::atan, std::atan>, "atan(x)"},
      {"sinh", unary<shale::sinh, std::sinh>, "sinh(x)"},
      {"cosh", unary<shale::cosh, std::cosh>, "cosh(x)"},
      {"tanh", unary<shale::tanh, std::tanh>, "tanh(x)"},
      {"degrees", unary<array_to_degrees, to_degrees>, "degrees(x)"},
      {"rad2deg", unary<array_to_degrees, to_degrees>, "rad2deg(x)"},
      {"radians", unary<array_to_radians, to_radians>, "radians(x)"},
      {"deg2rad", unary<array_to_radians, to_radians>, "deg2rad(x)"},
      {"abs", absolute, "abs(x)"},
      {"absolute", absolute, "absolute(x)"},
      {"square", square, "square(x)"},
      {"sign", sign, "sign(x)"},
      {"floor", rounding<shale::floor, std::floor>, "floor(x)"},
      {"ceil", rounding<shale::ceil, std::ceil>, "ceil(x)"},
      {"trunc", rounding<shale::trunc, std::trunc>, "trunc(x)"},
      {"round", rounding<shale::round, std::nearbyint>, "round(x)", true},
      {"rint", rounding<shale::round, std::nearbyint>, "rint(x)"},
      {"isnan", unary_array<shale::isnan>, "isnan(x)"},
      {"isfinite", unary_array<shale::isfinite>, "isfinite(x)"},
      {"isinf", isinf, "isinf(x)"},
      {"negative", [](arguments& from) { return apply_unary("-", from.required("x")); },
       "negative(x)"},
      {"add", operate<'+'>, "add(x1, x2)"},
      {"subtract", operate<'-'>, "subtract(x1, x2)"},
      {"multiply", operate<'*'>, "multiply(x1, x2)"},
      {"divide", operate<'/'>, "divide(x1, x2)"},
      {"floor_divide", operate<'/', '/'>, "floor_divide(x1, x2)"},
      {"remainder", operate<'%'>, "remainder(x1, x2)"},
      {"mod", operate<'%'>, "mod(x1, x2)"},
      {"power", operate<'*', '*'>, "power(x1, x2)"},
      {"pow", operate<'*', '*'>, "pow(x1, x2)"},
      {"arctan2", binary<shale::atan2>, "arctan2(y, x)"},
      {"atan2", binary<shale::atan2>, "atan2(y, x)"},
      {"hypot", binary<shale::hypot>, "hypot(x1, x2)"},
      {"minimum", binary<shale::minimum>, "minimum(x1, x2)"},
      {"maximum", binary<shale::maximum>, "maximum(x1, x2)"},
      {"logical_and", logical<both>, "logical_and(x1, x2)"},
      {"logical_or", logical<either>, "logical_or(x1, x2)"},
      {"logical_xor", logical<one_of>, "logical_xor(x1, x2)"},
      {"logical_not", logical_not, "logical_not(x)"},
      {"matmul", matmul, "matmul(x1, x2)"},
      {"dot", dot, "dot(a, b)", true},
      {"clip", clip, "clip(a, a_min, a_max)", true},
      {"clamp", clip, "clamp(a, a_min, a_max)"},
      {"where", where, "where(condition, x, y)"},
      {"astype", astype, "astype(x, dtype)", true},
      {"cast", astype, "cast(x, dtype)"},
      {"sum", reduce<shale::sum>, "sum(a, axis=None, keepdims=False)", true},
      {"prod", reduce<shale::prod>, "prod(a, axis=None, keepdims=False)", true},
      {"mean", reduce<shale::mean>, "mean(a, axis=None, keepdims=False)", true},
      {"var", reduce_moment<shale::var>, "var(a, axis=None, keepdims=False, ddof=0)", true},
      {"std", reduce_moment<shale::stddev>, "std(a, axis=None, keepdims=False, ddof=0)", true},
      {"min", reduce_extremum<shale::min>, "min(a, axis=None, keepdims=False)", true},
      {"amin", reduce_extremum<shale::min>, "amin(a, axis=None, keepdims=False)"},
      {"max", reduce_extremum<shale::max>, "max(a, axis=None, keepdims=False)", true},
      {"amax", reduce_extremum<shale::max>, "amax(a, axis=None, keepdims=False)"},
      {"any", reduce<shale::any>, "any(a, axis=None, keepdims=False)", true},
      {"all", reduce<shale::all>, "all(a, axis=None, keepdims=False)", true},
      {"count_nonzero", reduce<shale::count_nonzero>,
       "count_nonzero(a, axis=None, keepdims=False)"},
      {"arange", arange, "arange([start,] stop[, step], dtype=None)"},
      {"full", full, "full(shape, fill_value, dtype=None)"},
      {"zeros", full_of<0>, "zeros(shape, dtype=float64)"},
      {"ones", full_of<1>, "ones(shape, dtype=float64)"},
      {"zeros_like", full_like<0>, "zeros_like(a, dtype=None)"},
      {"ones_like", full_like<1>, "ones_like(a, dtype=None)"},
      {"tile", tile, "tile(A, reps)"},
      {"repeat", repeat, "repeat(a, repeats, axis=None)", true},
      {"concatenate", concatenate, "concatenate((a1, a2, …), axis=0)"},
      {"concat", concatenate, "concat((a1, a2, …), axis=0)"},
      {"stack", stack, "stack((a1, a2, …), axis=0)"},
      {"reshape", reshape, "reshape(a, shape)", true},
      {"ravel", ravel, "ravel(a)", true},
      {"expand_dims", expand_dims, "expand_dims(a, axis)"},
      {"squeeze", squeeze, "squeeze(a, axis=None)", true},
      {"transpose", transpose, "transpose(a, axes=None)", true},
      {"permute_dims", transpose, "permute_dims(a, axes)"},
      {"swapaxes", swapaxes, "swapaxes(a, axis1, axis2)", true},
      {"moveaxis", moveaxis, "moveaxis(a, source, destination)"},
      {"flip", flip, "flip(m, axis=None)"},
      {"broadcast_to", broadcast_to, "broadcast_to(array, shape)"},
  };
}

struct constant {
  std::string_view name;
  double value;
};

constexpr constant constants[] = {{"pi", std::numbers::pi},
                                  {"e", std::numbers::e},
                                  {"inf", std::numeric_limits<double>::infinity()},
                                  {"nan", std::numeric_limits<double>::quiet_NaN()}};

}  // namespace

const std::vector<function>& functions() {
  static const std::vector<function> all = make_functions();
  return all;
}

const function* find_function(std::string_view name) {
  for (const function& each : functions())
    if (each.name == name) return &each;
  return nullptr;
}

const double* find_constant(std::string_view name) {
  for (const constant& each : constants)
    if (each.name == name) return &each.value;
  return nullptr;
}

}  // namespace shale::tools
