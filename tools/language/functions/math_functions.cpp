#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <optional>

#include "language/functions/function_tables.hpp"
#include "language/values/arguments.hpp"
#include "language/values/array_literal.hpp"
#include "language/values/operators.hpp"
#include "language/values/value.hpp"
#include "shale/functions.hpp"

namespace shale::tools {

namespace {

using on_array = expr (*)(const expr&);
using on_arrays = expr (*)(const expr&, const expr&);
using on_number = double (*)(double);

template <char symbol>
constexpr char unary_symbol = symbol;

// A plain number gives a plain number, whose dtype then adapts to the arrays it is combined with.
template <on_array array, on_number number>
value unary(arguments& from) {
  const value a = from.required("x");
  if (a.is_number()) return {number(to_double(a))};
  return {array(to_operand(a))};
}

template <on_array array>
value unary_array(arguments& from) {
  return {array(from.array("x"))};
}

// An operand as operators take it: a list of numbers becomes an array.
value as_operand(const value& given) {
  return given.is<value::tuple>() ? value{to_operand(given)} : given;
}

template <char symbol>
value operate_alone(arguments& from) {
  return apply_unary({&unary_symbol<symbol>, 1}, as_operand(from.required("x")));
}

template <on_arrays array>
value binary(arguments& from) {
  const expr a = from.array("x1");
  return {array(a, from.array("x2"))};
}

// A function with the meaning of an operator.
template <char... symbol>
value operate(arguments& from) {
  constexpr char text[] = {symbol...};
  const value a = as_operand(from.required("x1"));
  return apply_binary({text, sizeof...(symbol)}, a, as_operand(from.required("x2")));
}

// Rounding leaves integers unchanged.
template <on_array array, on_number number>
value rounding(arguments& from) {
  const value a = from.required("x");
  if (a.is<double>()) return {number(a.as<double>())};
  return a.is_number() ? apply_unary("+", a) : value{array(to_operand(a))};
}

value absolute(arguments& from) {
  const value a = from.required("x");
  if (!a.is_number()) return {shale::abs(to_operand(a))};
  return std::signbit(to_double(a)) ? apply_unary("-", a) : apply_unary("+", a);
}

value square(arguments& from) {
  const value a = from.required("x");
  return a.is_number() ? apply_binary("*", a, a) : value{shale::square(to_operand(a))};
}

value sign(arguments& from) {
  const value a = from.required("x");
  if (!a.is_number()) return {shale::sign(to_operand(a))};
  const double number = to_double(a);
  if (a.is<double>()) return {number > 0 ? 1.0 : number < 0 ? -1.0 : number == 0 ? 0.0 : number};
  return {std::int64_t{number > 0} - std::int64_t{number < 0}};
}

double to_degrees(double angle) { return angle * (180 / std::numbers::pi); }
double to_radians(double angle) { return angle * (std::numbers::pi / 180); }

value clip(arguments& from) {
  const expr a = from.array("a");
  const std::optional<expr> low = from.optional_array("a_min");
  const std::optional<expr> high = from.optional_array("a_max");
  if (low && high) return {shale::clip(a, *low, *high)};
  if (low) return {shale::maximum(a, *low)};
  if (high) return {shale::minimum(a, *high)};
  return {a};
}

value isclose(arguments& from) {
  const expr a = from.array("a");
  const expr b = from.array("b");
  const double relative = from.real("rtol", 1e-5);
  return {shale::isclose(a, b, relative, from.real("atol", 1e-8))};
}

value where(arguments& from) {
  const expr condition = from.array("condition");
  const expr a = from.array("x");
  return {shale::where(condition, a, from.array("y"))};
}

value astype(arguments& from) {
  const expr a = from.array("x");
  return {shale::astype(a, to_dtype(from.required("dtype"), "astype: 'dtype'"))};
}

value lerp(arguments& from) {
  const expr a = from.array("a");
  const expr b = from.array("b");
  return {shale::lerp(a, b, from.array("weight"))};
}

// addcmul is a + value * b * c, and addcdiv is a + value * b / c.
template <expr (*add)(const expr&, const expr&, const expr&, const expr&)>
value add_scaled(arguments& from) {
  const expr a = from.array("a");
  const expr b = from.array("b");
  const expr c = from.array("c");
  const std::optional<value> scale = from.optional("value");
  return {add(a, b, c, scale ? to_expr(*scale) : expr(1))};
}

value dot(arguments& from) {
  const expr a = from.array("a");
  return {shale::dot(a, from.array("b"))};
}

}  // namespace

std::vector<function> math_functions() {
  return {
      {"sqrt", unary<shale::sqrt, std::sqrt>, "sqrt(x)"},
      {"exp", unary<shale::exp, std::exp>, "exp(x)"},
      {"exp2", unary<shale::exp2, std::exp2>, "exp2(x)"},
      {"expm1", unary<shale::expm1, std::expm1>, "expm1(x)"},
      {"log", unary<shale::log, std::log>, "log(x)"},
      {"log1p", unary<shale::log1p, std::log1p>, "log1p(x)"},
      {"log2", unary<shale::log2, std::log2>, "log2(x)"},
      {"log10", unary<shale::log10, std::log10>, "log10(x)"},
      {"sin", unary<shale::sin, std::sin>, "sin(x)"},
      {"cos", unary<shale::cos, std::cos>, "cos(x)"},
      {"tan", unary<shale::tan, std::tan>, "tan(x)"},
      {"asin", unary<shale::asin, std::asin>, "asin(x)"},
      {"acos", unary<shale::acos, std::acos>, "acos(x)"},
      {"atan", unary<shale::atan, std::atan>, "atan(x)"},
      {"sinh", unary<shale::sinh, std::sinh>, "sinh(x)"},
      {"cosh", unary<shale::cosh, std::cosh>, "cosh(x)"},
      {"tanh", unary<shale::tanh, std::tanh>, "tanh(x)"},
      {"asinh", unary<shale::asinh, std::asinh>, "asinh(x)"},
      {"acosh", unary<shale::acosh, std::acosh>, "acosh(x)"},
      {"atanh", unary<shale::atanh, std::atanh>, "atanh(x)"},
      {"cbrt", unary<shale::cbrt, std::cbrt>, "cbrt(x)"},
      {"erf", unary<shale::erf, std::erf>, "erf(x)"},
      {"lgamma", unary<shale::lgamma, std::lgamma>, "lgamma(x)"},
      {"rsqrt", unary_array<shale::rsqrt>, "rsqrt(x)"},
      {"reciprocal", unary_array<shale::reciprocal>, "reciprocal(x)"},
      {"sigmoid", unary_array<shale::sigmoid>, "sigmoid(x)"},
      {"frac", unary_array<shale::frac>, "frac(x)"},
      {"conj", unary_array<shale::conj>, "conj(x)", true},
      {"real", unary_array<shale::real>, "real(x)"},
      {"imag", unary_array<shale::imag>, "imag(x)"},
      {"angle", unary_array<shale::angle>, "angle(x)"},
      {"signbit", unary_array<shale::signbit>, "signbit(x)"},
      {"degrees", unary<shale::degrees, to_degrees>, "degrees(x)"},
      {"radians", unary<shale::radians, to_radians>, "radians(x)"},
      {"abs", absolute, "abs(x)"},
      {"square", square, "square(x)"},
      {"sign", sign, "sign(x)"},
      {"floor", rounding<shale::floor, std::floor>, "floor(x)"},
      {"ceil", rounding<shale::ceil, std::ceil>, "ceil(x)"},
      {"trunc", rounding<shale::trunc, std::trunc>, "trunc(x)"},
      {"round", rounding<shale::round, std::nearbyint>, "round(x)", true},
      {"isnan", unary_array<shale::isnan>, "isnan(x)"},
      {"isfinite", unary_array<shale::isfinite>, "isfinite(x)"},
      {"isinf", unary_array<shale::isinf>, "isinf(x)"},
      {"negative", operate_alone<'-'>, "negative(x)"},
      {"positive", operate_alone<'+'>, "positive(x)"},
      {"bitwise_invert", operate_alone<'~'>, "bitwise_invert(x)"},
      {"bitwise_and", operate<'&'>, "bitwise_and(x1, x2)"},
      {"bitwise_or", operate<'|'>, "bitwise_or(x1, x2)"},
      {"bitwise_xor", operate<'^'>, "bitwise_xor(x1, x2)"},
      {"bitwise_left_shift", operate<'<', '<'>, "bitwise_left_shift(x1, x2)"},
      {"bitwise_right_shift", operate<'>', '>'>, "bitwise_right_shift(x1, x2)"},
      {"equal", operate<'=', '='>, "equal(x1, x2)"},
      {"not_equal", operate<'!', '='>, "not_equal(x1, x2)"},
      {"less", operate<'<'>, "less(x1, x2)"},
      {"less_equal", operate<'<', '='>, "less_equal(x1, x2)"},
      {"greater", operate<'>'>, "greater(x1, x2)"},
      {"greater_equal", operate<'>', '='>, "greater_equal(x1, x2)"},
      {"add", operate<'+'>, "add(x1, x2)"},
      {"subtract", operate<'-'>, "subtract(x1, x2)"},
      {"multiply", operate<'*'>, "multiply(x1, x2)"},
      {"divide", operate<'/'>, "divide(x1, x2)"},
      {"floor_divide", operate<'/', '/'>, "floor_divide(x1, x2)"},
      {"remainder", operate<'%'>, "remainder(x1, x2)"},
      {"fmod", binary<shale::fmod>, "fmod(x1, x2)"},
      {"copysign", binary<shale::copysign>, "copysign(x1, x2)"},
      {"nextafter", binary<shale::nextafter>, "nextafter(x1, x2)"},
      {"logaddexp", binary<shale::logaddexp>, "logaddexp(x1, x2)"},
      {"lerp", lerp, "lerp(a, b, weight)"},
      {"addcmul", add_scaled<shale::addcmul>, "addcmul(a, b, c, value=1)"},
      {"addcdiv", add_scaled<shale::addcdiv>, "addcdiv(a, b, c, value=1)"},
      {"pow", operate<'*', '*'>, "pow(x1, x2)"},
      {"atan2", binary<shale::atan2>, "atan2(x1, x2)"},
      {"hypot", binary<shale::hypot>, "hypot(x1, x2)"},
      {"minimum", binary<shale::minimum>, "minimum(x1, x2)"},
      {"maximum", binary<shale::maximum>, "maximum(x1, x2)"},
      {"logical_and", binary<shale::logical_and>, "logical_and(x1, x2)"},
      {"logical_or", binary<shale::logical_or>, "logical_or(x1, x2)"},
      {"logical_xor", binary<shale::logical_xor>, "logical_xor(x1, x2)"},
      {"logical_not", unary_array<shale::logical_not>, "logical_not(x)"},
      {"matmul", binary<shale::matmul>, "matmul(x1, x2)"},
      {"dot", dot, "dot(a, b)", true},
      {"clip", clip, "clip(a, a_min=None, a_max=None)", true},
      {"where", where, "where(condition, x, y)"},
      {"isclose", isclose, "isclose(a, b, rtol=1e-5, atol=1e-8)"},
      {"astype", astype, "astype(x, dtype)", true},
  };
}

}  // namespace shale::tools
