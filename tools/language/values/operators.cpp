#include "language/values/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>

#include "shale/functions.hpp"

namespace shale::tools {

namespace {

[[noreturn]] void refuse(std::string_view message,
                         std::initializer_list<std::string> details = {}) {
  throw error(errc::invalid_argument, message, details);
}

// The result of a comparison, or nothing if the symbol is another operator.
std::optional<value> comparison(std::string_view symbol, const expr& a, const expr& b) {
  if (symbol == "==") return value{a == b};
  if (symbol == "!=") return value{a != b};
  if (symbol == "<") return value{a < b};
  if (symbol == "<=") return value{a <= b};
  if (symbol == ">") return value{a > b};
  if (symbol == ">=") return value{a >= b};
  return std::nullopt;
}

value integer_value(std::optional<wide_integer> result) {
  if (result && *result >= std::numeric_limits<std::int64_t>::min() &&
      *result <= std::numeric_limits<std::int64_t>::max())
    return {static_cast<std::int64_t>(*result)};
  if (result && *result > 0 && *result <= std::numeric_limits<std::uint64_t>::max())
    return {static_cast<std::uint64_t>(*result)};
  refuse("the result does not fit in 64 bits", {"write one of the numbers as a float, as in 2.0"});
}

std::optional<wide_integer> product(wide_integer a, wide_integer b) {
  wide_integer result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// The quotient, rounded once, as in Python. A division of doubles would first round the operands
// that are above 2^53.
double true_quotient(wide_integer a, wide_integer b) {
  constexpr wide_integer exact = wide_integer{1} << 53;
  if (a == 0 || (-exact <= a && a <= exact && -exact <= b && b <= exact))
    return static_cast<double>(a) / static_cast<double>(b);
  __extension__ using natural = unsigned __int128;
  auto dividend = static_cast<natural>(a < 0 ? -a : a);
  const auto divisor = static_cast<natural>(b < 0 ? -b : b);
  int shift = 0;
  for (; dividend >> 127 == 0; ++shift) dividend <<= 1;
  // The divisor is less than 2^64, so this quotient has more than 62 bits. Its last bit is set if
  // there is a remainder, so that the quotient is not taken for a tie.
  const natural quotient = dividend / divisor | natural{dividend % divisor != 0};
  const double magnitude = std::ldexp(static_cast<double>(quotient), -shift);
  return (a < 0) != (b < 0) ? -magnitude : magnitude;
}

wide_integer floor_quotient(wide_integer a, wide_integer b) {
  const wide_integer quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

wide_integer floor_remainder(wide_integer a, wide_integer b) {
  const wide_integer rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

value integer_power(wide_integer base, wide_integer exponent) {
  if (exponent < 0) {
    if (base == 0) refuse("division by zero");
    return {std::pow(static_cast<double>(base), static_cast<double>(exponent))};
  }
  // These bases are handled here, because the loop below would take 2^62 steps for 1 ** (2 ** 62).
  if (base == 0 || base == 1) return integer_value(exponent == 0 ? wide_integer{1} : base);
  if (base == -1) return integer_value(wide_integer{exponent % 2 == 0 ? 1 : -1});
  std::optional<wide_integer> result = wide_integer{1};
  for (; exponent > 0 && result; --exponent) result = product(*result, base);
  return integer_value(result);
}

value integer_shift(std::string_view symbol, wide_integer a, wide_integer places) {
  if (places < 0) refuse("a number is shifted by a negative number of places");
  if (symbol == ">>") return integer_value(a >> std::min(places, wide_integer{64}));
  if (a == 0) return integer_value(a);
  if (places > 63) return integer_value(std::nullopt);
  return integer_value(product(a, wide_integer{1} << places));
}

std::optional<value> integer_binary(std::string_view symbol, wide_integer a, wide_integer b) {
  if (symbol == "+") return integer_value(a + b);
  if (symbol == "-") return integer_value(a - b);
  if (symbol == "*") return integer_value(product(a, b));
  if (symbol == "**") return integer_power(a, b);
  if (symbol == "<<" || symbol == ">>") return integer_shift(symbol, a, b);
  if (symbol == "&") return integer_value(a & b);
  if (symbol == "|") return integer_value(a | b);
  if (symbol == "^") return integer_value(a ^ b);
  if (symbol != "//" && symbol != "%" && symbol != "/") return std::nullopt;
  if (b == 0) refuse("division by zero");
  if (symbol == "/") return value{true_quotient(a, b)};
  return integer_value(symbol == "//" ? floor_quotient(a, b) : floor_remainder(a, b));
}

// The power of 0 with a negative exponent is a division by zero, except with the limit -inf.
double real_power(double base, double exponent) {
  if (base == 0 && exponent < 0 && std::isfinite(exponent)) refuse("division by zero");
  return std::pow(base, exponent);
}

std::optional<value> real_binary(std::string_view symbol, double a, double b) {
  if (symbol == "+") return value{a + b};
  if (symbol == "-") return value{a - b};
  if (symbol == "*") return value{a * b};
  if (symbol == "**") return value{real_power(a, b)};
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

// The order of the exact numbers: doubles above 2^53 cannot represent all integers.
std::partial_ordering order_of(wide_integer a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (std::abs(b) >= 0x1p65) return 0.0 <=> b;
  const auto whole = static_cast<wide_integer>(b);
  if (a != whole) return a < whole ? std::partial_ordering::less : std::partial_ordering::greater;
  return 0.0 <=> b - static_cast<double>(whole);
}

std::partial_ordering reversed(std::partial_ordering order) {
  if (std::is_lt(order)) return std::partial_ordering::greater;
  if (std::is_gt(order)) return std::partial_ordering::less;
  return order;
}

std::partial_ordering order_of(const value& a, const value& b) {
  if (a.is_integer() && b.is_integer()) return to_integer(a) <=> to_integer(b);
  if (a.is_integer()) return order_of(to_integer(a), b.as<double>());
  if (b.is_integer()) return reversed(order_of(to_integer(b), a.as<double>()));
  return a.as<double>() <=> b.as<double>();
}

std::optional<value> comparison(std::string_view symbol, std::partial_ordering order) {
  if (symbol == "==") return value{std::is_eq(order)};
  if (symbol == "!=") return value{std::is_neq(order)};
  if (symbol == "<") return value{std::is_lt(order)};
  if (symbol == "<=") return value{std::is_lteq(order)};
  if (symbol == ">") return value{std::is_gt(order)};
  if (symbol == ">=") return value{std::is_gteq(order)};
  return std::nullopt;
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
    const wide_integer number = to_integer(a);
    return integer_value(symbol == "+" ? number : symbol == "-" ? -number : ~number);
  }
  const expr operand = to_expr(a);
  if (symbol == "+") return {operand};
  return {symbol == "-" ? -operand : ~operand};
}

value apply_binary(std::string_view symbol, const value& a, const value& b) {
  // A number is not a matrix. The matrix product of arrays reports that error.
  if (a.is_number() && b.is_number() && symbol != "@") {
    // Python's bools are integers, but & | ^ of two bools give a bool.
    if (a.is<bool>() && b.is<bool>() && (symbol == "&" || symbol == "|" || symbol == "^"))
      return {integer_binary(symbol, to_integer(a), to_integer(b))->as<std::int64_t>() != 0};
    std::optional<value> result = comparison(symbol, order_of(a, b));
    if (!result && a.is_integer() && b.is_integer())
      result = integer_binary(symbol, to_integer(a), to_integer(b));
    else if (!result) result = real_binary(symbol, to_double(a), to_double(b));
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
