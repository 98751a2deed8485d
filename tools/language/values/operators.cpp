#include "language/values/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "shale/functions.hpp"

namespace shale::tools {

namespace {

[[noreturn]] void refuse(std::string_view message,
                         std::initializer_list<std::string> details = {}) {
  throw error(errc::invalid_argument, message, details);
}

// The result of a comparison, or nothing if the symbol is another operator. Integers, floats and
// arrays are compared as what they are: doubles above 2^53 cannot represent all integers.
template <class Operand>
std::optional<value> comparison(std::string_view symbol, const Operand& a, const Operand& b) {
  if (symbol == "==") return value{a == b};
  if (symbol == "!=") return value{a != b};
  if (symbol == "<") return value{a < b};
  if (symbol == "<=") return value{a <= b};
  if (symbol == ">") return value{a > b};
  if (symbol == ">=") return value{a >= b};
  return std::nullopt;
}

value integer_value(std::optional<std::int64_t> result) {
  if (!result)
    refuse("the result does not fit in 64 bits",
           {"write one of the numbers as a float, as in 2.0"});
  return {*result};
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// The product of the quotient and b may not fit in 64 bits, so it is not computed.
std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return {std::pow(static_cast<double>(base), static_cast<double>(exponent))};
  std::optional<std::int64_t> result = 1;
  // These bases are handled here, because the loop below would take 2^62 steps for 1 ** (2 ** 62).
  if (base == 0 || base == 1) return {exponent == 0 ? std::int64_t{1} : base};
  if (base == -1) return {exponent % 2 == 0 ? std::int64_t{1} : std::int64_t{-1}};
  for (; exponent > 0 && result; --exponent) result = checked_mul(*result, base);
  return integer_value(result);
}

value integer_shift(std::string_view symbol, std::int64_t a, std::int64_t places) {
  if (places < 0) refuse("a number is shifted by a negative number of places");
  if (symbol == ">>") return {a >> std::min<std::int64_t>(places, 63)};
  if (a == 0) return {a};
  return integer_value(places < 63 ? checked_mul(a, std::int64_t{1} << places) : std::nullopt);
}

std::optional<value> integer_binary(std::string_view symbol, std::int64_t a, std::int64_t b) {
  if (symbol == "+") return integer_value(checked_add(a, b));
  if (symbol == "-") return integer_value(checked_sub(a, b));
  if (symbol == "*") return integer_value(checked_mul(a, b));
  if (symbol == "**") return integer_power(a, b);
  if (symbol == "<<" || symbol == ">>") return integer_shift(symbol, a, b);
  if (symbol == "&") return value{a & b};
  if (symbol == "|") return value{a | b};
  if (symbol == "^") return value{a ^ b};
  if (symbol != "//" && symbol != "%" && symbol != "/") return std::nullopt;
  if (b == 0) refuse("division by zero");
  if (symbol == "/") return value{static_cast<double>(a) / static_cast<double>(b)};
  if (b == -1)
    return symbol == "%" ? value{std::int64_t{0}} : integer_value(checked_sub<std::int64_t>(0, a));
  if (symbol == "//") return value{floor_quotient(a, b)};
  return value{floor_remainder(a, b)};
}

std::optional<value> real_binary(std::string_view symbol, double a, double b) {
  if (symbol == "+") return value{a + b};
  if (symbol == "-") return value{a - b};
  if (symbol == "*") return value{a * b};
  if (symbol == "**") return value{std::pow(a, b)};
  if (symbol != "//" && symbol != "%" && symbol != "/") return std::nullopt;
  if (b == 0) refuse("division by zero");
  if (symbol == "/") return value{a / b};
  // fmod is exact. Python's remainder has the divisor's sign, so b is added if the signs differ.
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

struct array_operator {
  std::string_view symbol;
  expr (*apply)(const expr&, const expr&);
};

constexpr std::array<array_operator, 13> array_operators{{
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
    {"<<", [](const expr& a, const expr& b) { return shale::bitwise_left_shift(a, b); }},
    {">>", [](const expr& a, const expr& b) { return shale::bitwise_right_shift(a, b); }},
}};

}  // namespace

value apply_unary(std::string_view symbol, const value& a) {
  if (a.is<double>() && symbol != "~") return {symbol == "-" ? -a.as<double>() : a.as<double>()};
  if (a.is_integer()) {
    const std::int64_t number = to_integer(a);
    if (symbol == "+") return {number};
    if (symbol == "-") return integer_value(checked_sub<std::int64_t>(0, number));
    return {~number};
  }
  const expr operand = to_expr(a);
  if (symbol == "+") return {operand};
  return {symbol == "-" ? -operand : ~operand};
}

value apply_binary(std::string_view symbol, const value& a, const value& b) {
  // A number is not a matrix. The matrix product of arrays reports that error.
  if (a.is_number() && b.is_number() && symbol != "@") {
    std::optional<value> result;
    // Python's bools are integers, but & | ^ of two bools give a bool.
    if (a.is<bool>() && b.is<bool>() && (symbol == "&" || symbol == "|" || symbol == "^"))
      return {integer_binary(symbol, to_integer(a), to_integer(b))->as<std::int64_t>() != 0};
    if (a.is_integer() && b.is_integer()) {
      result = comparison(symbol, to_integer(a), to_integer(b));
      if (!result) result = integer_binary(symbol, to_integer(a), to_integer(b));
    } else {
      result = comparison(symbol, to_double(a), to_double(b));
      if (!result) result = real_binary(symbol, to_double(a), to_double(b));
    }
    if (!result) refuse(fmt::format("'{}' does not apply to floats", symbol));
    return *result;
  }
  const expr left = to_expr(a);
  const expr right = to_expr(b);
  if (std::optional<value> compared = comparison(symbol, left, right)) return *compared;
  for (const array_operator& candidate : array_operators)
    if (candidate.symbol == symbol) return {candidate.apply(left, right)};
  refuse(fmt::format("'{}' is not an operator of arrays", symbol));
}

}  // namespace shale::tools
