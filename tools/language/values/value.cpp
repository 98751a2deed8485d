#include "language/values/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

namespace shale::tools {

namespace {

[[noreturn]] void fail(std::string_view message, std::initializer_list<std::string> details = {}) {
  throw error(errc::invalid_argument, message, details);
}

}  // namespace

value_tuple::value_tuple(std::vector<value> elements, sequence_kind kind) : kind_(kind), depth_(1) {
  for (const value& element : elements)
    if (element.is<value_tuple>()) depth_ = std::max(depth_, element.as<value_tuple>().depth() + 1);
  elements_ = std::make_shared<const std::vector<value>>(std::move(elements));
}

std::string_view value::description() const noexcept {
  struct {
    std::string_view operator()(const expr&) { return "an array"; }
    std::string_view operator()(bool) { return "a bool"; }
    std::string_view operator()(std::int64_t) { return "an integer"; }
    std::string_view operator()(std::uint64_t) { return "an integer"; }
    std::string_view operator()(double) { return "a float"; }
    std::string_view operator()(none_t) { return "None"; }
    std::string_view operator()(shale::dtype) { return "a dtype"; }
    std::string_view operator()(const std::string&) { return "a string"; }
    std::string_view operator()(const shale::slice&) { return "a slice"; }
    std::string_view operator()(ellipsis_t) { return "'...'"; }
    std::string_view operator()(namespace_t) { return "a namespace"; }
    std::string_view operator()(const tuple& values) {
      return values.kind() == sequence_kind::list ? "a list" : "a tuple";
    }
  } describe;
  return std::visit(describe, held);
}

expr to_expr(const value& operand) {
  if (operand.is<expr>()) return operand.as<expr>();
  if (operand.is<bool>()) return expr(scalar(operand.as<bool>()));
  if (operand.is<std::int64_t>()) return expr(scalar(operand.as<std::int64_t>()));
  if (operand.is<std::uint64_t>()) return expr(scalar(operand.as<std::uint64_t>()));
  if (operand.is<double>()) return expr(scalar(operand.as<double>()));
  fail(fmt::format("expected an array or a number, got {}", operand.description()));
}

double to_double(const value& number) {
  if (number.is<double>()) return number.as<double>();
  return static_cast<double>(to_integer(number));
}

wide_integer to_integer(const value& number) {
  if (number.is<bool>()) return wide_integer{number.as<bool>()};
  if (number.is<std::uint64_t>()) return wide_integer{number.as<std::uint64_t>()};
  return wide_integer{number.as<std::int64_t>()};
}

index_t to_index(const value& number, std::string_view subject) {
  if (!number.is_integer())
    fail(fmt::format("{} must be an integer, got {}", subject, number.description()));
  const wide_integer position = to_integer(number);
  if (position > std::numeric_limits<index_t>::max())
    fail(fmt::format("{} must be less than 2^63, got {}", subject, number.as<std::uint64_t>()));
  return static_cast<index_t>(position);
}

dims to_dims(const value& numbers, std::string_view subject) {
  if (numbers.is_integer()) return {to_index(numbers, subject)};
  if (!numbers.is<value::tuple>())
    fail(fmt::format("{} must be a tuple of integers, got {}", subject, numbers.description()));
  dims result;
  for (const value& number : numbers.as<value::tuple>().elements())
    result.push_back(to_index(number, subject));
  return result;
}

}  // namespace shale::tools
