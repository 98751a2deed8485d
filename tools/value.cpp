#include "value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace shale::tools {

namespace {

[[noreturn]] void fail(std::string_view message, std::initializer_list<std::string> details = {}) {
  throw error(errc::invalid_argument, message, details);
}

std::int64_t to_integer(const value& which) {
  return which.is<bool>() ? std::int64_t{which.as<bool>()} : which.as<std::int64_t>();
}

bool is_integer(const value& which) { return which.is<bool>() || which.is<std::int64_t>(); }

value from(std::optional<std::int64_t> result) {
  if (!result)
    fail("the result does not fit in 64 bits", {"write one of the numbers as a float, as in 2.0"});
  return {*result};
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return {std::pow(static_cast<double>(base), static_cast<double>(exponent))};
  std::optional<std::int64_t> result = 1;
  // Without this, 1 ** (2 ** 62) would count for a long time.
  if (base == 0 || base == 1) return {exponent == 0 ? std::int64_t{1} : base};
  if (base == -1) return {exponent % 2 == 0 ? std::int64_t{1} : std::int64_t{-1}};
  for (; exponent > 0 && result; --exponent) result = checked_mul(*result, base);
  return from(result);
}

std::optional<value> integer_binary(std::string_view symbol, std::int64_t a, std::int64_t b) {
  if (symbol == "+") return from(checked_add(a, b));
  if (symbol == "-") return from(checked_sub(a, b));
  if (symbol == "*") return from(checked_mul(a, b));
  if (symbol == "**") return integer_power(a, b);
  if (symbol == "&") return value{a & b};
  if (symbol == "|") return value{a | b};
  if (symbol == "^") return value{a ^ b};
  if (symbol != "//" && symbol != "%" && symbol != "/") return std::nullopt;
  if (b == 0) fail("division by zero");
  if (symbol == "/") return value{static_cast<double>(a) / static_cast<double>(b)};
  if (b == -1)
    return symbol == "%" ? value{std::int64_t{0}} : from(checked_sub<std::int64_t>(0, a));
  if (symbol == "//") return value{floor_quotient(a, b)};
  return value{a - floor_quotient(a, b) * b};
}

std::optional<value> real_binary(std::string_view symbol, double a, double b) {
  if (symbol == "+") return value{a + b};
  if (symbol == "-") return value{a - b};
  if (symbol == "*") return value{a * b};
  if (symbol == "**") return value{std::pow(a, b)};
  if (symbol == "==") return value{a == b};
  if (symbol == "!=") return value{a != b};
  if (symbol == "<") return value{a < b};
  if (symbol == "<=") return value{a <= b};
  if (symbol == ">") return value{a > b};
  if (symbol == ">=") return value{a >= b};
  if (symbol != "//" && symbol != "%" && symbol != "/") return std::nullopt;
  if (b == 0) fail("division by zero");
  if (symbol == "/") return value{a / b};
  // fmod is exact; Python's remainder is it, moved by one divisor where the signs differ.
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (rest == 0) rest = std::copysign(0.0, b);
  if (symbol == "%") return value{rest};
  return value{std::round(quotient)};
}

// Integers compare as integers: above 2^53 doubles would lose the difference.
std::optional<value> integer_comparison(std::string_view symbol, std::int64_t a, std::int64_t b) {
  if (symbol == "==") return value{a == b};
  if (symbol == "!=") return value{a != b};
  if (symbol == "<") return value{a < b};
  if (symbol == "<=") return value{a <= b};
  if (symbol == ">") return value{a > b};
  if (symbol == ">=") return value{a >= b};
  return std::nullopt;
}

struct array_operator {
  std::string_view symbol;
  expr (*apply)(const expr&, const expr&);
};

constexpr std::array<array_operator, 17> array_operators{{
    {"+", [](const expr& a, const expr& b) { return a + b; }},
    {"-", [](const expr& a, const expr& b) { return a - b; }},
    {"*", [](const expr& a, const expr& b) { return a * b; }},
    {"/", [](const expr& a, const expr& b) { return a / b; }},
    {"%", [](const expr& a, const expr& b) { return a % b; }},
    {"@", [](const expr& a, const expr& b) { return shale::matmul(a, b); }},
    {"//", [](const expr& a, const expr& b) { return shale::floor_divide(a, b); }},
    {"**", [](const expr& a, const expr& b) { return shale::pow(a, b); }},
    {"&", [](const expr& a, const expr& b) { return a & b; }},
    {"|", [](const expr& a, const expr& b) { return a | b; }},
    {"^", [](const expr& a, const expr& b) { return a ^ b; }},
    {"==", [](const expr& a, const expr& b) { return a == b; }},
    {"!=", [](const expr& a, const expr& b) { return a != b; }},
    {"<", [](const expr& a, const expr& b) { return a < b; }},
    {"<=", [](const expr& a, const expr& b) { return a <= b; }},
    {">", [](const expr& a, const expr& b) { return a > b; }},
    {">=", [](const expr& a, const expr& b) { return a >= b; }},
}};

}  // namespace

value_tuple::value_tuple(std::vector<value> elements, sequence_kind kind) : kind_(kind), depth_(1) {
  for (const value& each : elements)
    if (each.is<value_tuple>()) depth_ = std::max(depth_, each.as<value_tuple>().depth() + 1);
  elements_ = std::make_shared<const std::vector<value>>(std::move(elements));
}

std::string_view value::description() const noexcept {
  struct {
    std::string_view operator()(const expr&) { return "an array"; }
    std::string_view operator()(bool) { return "a bool"; }
    std::string_view operator()(std::int64_t) { return "an integer"; }
    std::string_view operator()(double) { return "a float"; }
    std::string_view operator()(none_t) { return "None"; }
    std::string_view operator()(shale::dtype) { return "a dtype"; }
    std::string_view operator()(const std::string&) { return "a string"; }
    std::string_view operator()(const shale::slice&) { return "a slice"; }
    std::string_view operator()(ellipsis_t) { return "'...'"; }
    std::string_view operator()(namespace_t) { return "a namespace"; }
    std::string_view operator()(const tuple& which) {
      return which.kind() == sequence_kind::list ? "a list" : "a tuple";
    }
  } describe;
  return std::visit(describe, held);
}

expr to_expr(const value& which) {
  if (which.is<expr>()) return which.as<expr>();
  if (which.is<bool>()) return expr(scalar(which.as<bool>()));
  if (which.is<std::int64_t>()) return expr(scalar(which.as<std::int64_t>()));
  if (which.is<double>()) return expr(scalar(which.as<double>()));
  fail(fmt::format("expected an array or a number, got {}", which.description()));
}

double to_double(const value& which) {
  if (which.is<double>()) return which.as<double>();
  return static_cast<double>(to_integer(which));
}

index_t to_index(const value& which, std::string_view what) {
  if (!is_integer(which))
    fail(fmt::format("{} must be an integer, got {}", what, which.description()));
  return to_integer(which);
}

dims to_dims(const value& which, std::string_view what) {
  if (is_integer(which)) return {to_integer(which)};
  if (!which.is<value::tuple>())
    fail(fmt::format("{} must be a tuple of integers, got {}", what, which.description()));
  dims result;
  for (const value& each : which.as<value::tuple>().elements())
    result.push_back(to_index(each, what));
  return result;
}

value apply_unary(std::string_view symbol, const value& a) {
  if (a.is<double>() && symbol != "~") return {symbol == "-" ? -a.as<double>() : a.as<double>()};
  if (is_integer(a)) {
    const std::int64_t number = to_integer(a);
    if (symbol == "+") return {number};
    if (symbol == "-") return from(checked_sub<std::int64_t>(0, number));
    return {~number};
  }
  const expr operand = to_expr(a);
  if (symbol == "+") return {operand};
  return {symbol == "-" ? -operand : ~operand};
}

value apply_binary(std::string_view symbol, const value& a, const value& b) {
  // No number is a matrix: the product of arrays says so.
  if (a.is_number() && b.is_number() && symbol != "@") {
    std::optional<value> result;
    // Python's bools are integers, but combine to bools under & | ^.
    if (a.is<bool>() && b.is<bool>() && (symbol == "&" || symbol == "|" || symbol == "^"))
      return {integer_binary(symbol, to_integer(a), to_integer(b))->as<std::int64_t>() != 0};
    if (is_integer(a) && is_integer(b)) {
      result = integer_comparison(symbol, to_integer(a), to_integer(b));
      if (!result) result = integer_binary(symbol, to_integer(a), to_integer(b));
    } else {
      result = real_binary(symbol, to_double(a), to_double(b));
    }
    if (!result) fail(fmt::format("'{}' does not apply to floats", symbol));
    return *result;
  }
  const expr left = to_expr(a);
  const expr right = to_expr(b);
  for (const array_operator& each : array_operators)
    if (each.symbol == symbol) return {each.apply(left, right)};
  fail(fmt::format("'{}' is not an operator of arrays", symbol));
}

}  // namespace shale::tools
