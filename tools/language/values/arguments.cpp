#include "language/values/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "language/values/array_literal.hpp"
#include "language/values/indexing.hpp"

namespace shale::tools {

namespace {

// Whether a signature as "sum(a, axis=None)" or "arange([start,] stop)" names the parameter.
bool names_parameter(std::string_view signature, std::string_view parameter) {
  const auto is_one_of = [&](std::size_t at, std::string_view characters) {
    return at < signature.size() && characters.find(signature[at]) != std::string_view::npos;
  };
  std::size_t at = signature.find('(');
  while ((at = signature.find(parameter, at + 1)) != std::string_view::npos)
    if (is_one_of(at - 1, "([ ") && is_one_of(at + parameter.size(), ",=)[]")) return true;
  return false;
}

}  // namespace

std::string arguments::describe(std::string_view parameter) const {
  return fmt::format("{}: '{}'", function_, parameter);
}

std::optional<value> arguments::optional(std::string_view parameter) {
  const auto named = std::find_if(keywords_.begin(), keywords_.end(), [&](const keyword& argument) {
    return argument.first == parameter;
  });
  if (next_ < positional_.size()) {
    if (named != keywords_.end())
      throw error(errc::invalid_argument, fmt::format("{} is given twice", describe(parameter)));
    return positional_[next_++];
  }
  if (named == keywords_.end()) return std::nullopt;
  value result = std::move(named->second);
  keywords_.erase(named);
  return result;
}

value arguments::required(std::string_view parameter) {
  if (std::optional<value> found = optional(parameter)) return *std::move(found);
  throw error(errc::invalid_argument, fmt::format("{} is missing", describe(parameter)));
}

expr arguments::array(std::string_view parameter) {
  return array_of(required(parameter), parameter);
}

expr arguments::index_array(std::string_view parameter) {
  const value found = required(parameter);
  return with_context([&] { return describe(parameter); }, [&] { return to_index_array(found); });
}

std::optional<expr> arguments::optional_array(std::string_view parameter) {
  const std::optional<value> found = optional(parameter);
  if (!found || found->is<none_t>()) return std::nullopt;
  return array_of(*found, parameter);
}

expr arguments::array_of(const value& found, std::string_view parameter) const {
  return with_context([&] { return describe(parameter); }, [&] { return to_operand(found); });
}

index_t arguments::index(std::string_view parameter) {
  return to_index(required(parameter), describe(parameter));
}

index_t arguments::index(std::string_view parameter, index_t otherwise) {
  const std::optional<value> found = optional(parameter);
  return found ? to_index(*found, describe(parameter)) : otherwise;
}

dims arguments::shape(std::string_view parameter) {
  return to_dims(required(parameter), describe(parameter));
}

bool arguments::flag(std::string_view parameter, bool otherwise) {
  const std::optional<value> found = optional(parameter);
  if (!found) return otherwise;
  if (found->is<bool>()) return found->as<bool>();
  throw error(errc::invalid_argument, fmt::format("{} must be True or False, got {}",
                                                  describe(parameter), found->description()));
}

double arguments::real(std::string_view parameter, double otherwise) {
  const std::optional<value> found = optional(parameter);
  return found ? real_of(*found, parameter) : otherwise;
}

std::optional<double> arguments::optional_real(std::string_view parameter) {
  const std::optional<value> found = optional(parameter);
  if (!found || found->is<none_t>()) return std::nullopt;
  return real_of(*found, parameter);
}

double arguments::real_of(const value& found, std::string_view parameter) const {
  if (found.is_number()) return to_double(found);
  throw error(errc::invalid_argument,
              fmt::format("{} must be a number, got {}", describe(parameter), found.description()));
}

scalar arguments::number(std::string_view parameter) {
  return number_of(required(parameter), parameter);
}

std::optional<scalar> arguments::optional_number(std::string_view parameter) {
  const std::optional<value> found = optional(parameter);
  if (!found || found->is<none_t>()) return std::nullopt;
  return number_of(*found, parameter);
}

scalar arguments::number_of(const value& found, std::string_view parameter) const {
  // A reduction of an array is a number too.
  if (found.is<expr>() && found.as<expr>().rank() == 0) return eval(found.as<expr>()).item();
  if (found.is<bool>()) return scalar(found.as<bool>());
  if (found.is<std::int64_t>()) return scalar(found.as<std::int64_t>());
  if (found.is<std::uint64_t>()) return scalar(found.as<std::uint64_t>());
  if (found.is<double>()) return scalar(found.as<double>());
  throw error(errc::invalid_argument,
              fmt::format("{} must be a number, got {}", describe(parameter), found.description()));
}

std::optional<index_t> arguments::axis(std::string_view parameter) {
  const std::optional<value> given = optional(parameter);
  if (!given || given->is<none_t>()) return std::nullopt;
  return to_index(*given, describe(parameter));
}

std::optional<dims> arguments::axes(std::string_view parameter) {
  const std::optional<value> found = optional(parameter);
  if (!found || found->is<none_t>()) return std::nullopt;
  return to_dims(*found, describe(parameter));
}

std::optional<shale::dtype> arguments::type(std::string_view parameter) {
  const std::optional<value> found = optional(parameter);
  if (!found || found->is<none_t>()) return std::nullopt;
  return to_dtype(*found, describe(parameter));
}

dims arguments::integers_or_shape(std::string_view parameter) {
  if (positional_left() < 2) return shape(parameter);
  dims result;
  while (positional_left() > 0)
    result.push_back(to_index(positional_[next_++], describe(parameter)));
  return result;
}

void arguments::require_parameters_of(std::string_view signature) const {
  for (const auto& [parameter, argument] : keywords_)
    if (!names_parameter(signature, parameter)) throw_no_parameter(parameter);
}

void arguments::throw_no_parameter(std::string_view parameter) const {
  throw error(errc::invalid_argument,
              fmt::format("{} has no parameter '{}'", function_, parameter));
}

void arguments::throw_no_choice(std::string_view parameter, const value& given,
                                const std::vector<std::string_view>& words) const {
  throw error(
      errc::invalid_argument,
      fmt::format("{} must be one of '{}', got {}", describe(parameter), fmt::join(words, "', '"),
                  given.is<std::string>() ? '\'' + given.as<std::string>() + '\''
                                          : std::string(given.description())));
}

void arguments::finish() const {
  if (positional_left() > 0)
    throw error(errc::invalid_argument,
                fmt::format("{} takes {} argument{} here, got {}", function_, next_,
                            next_ == 1 ? "" : "s", positional_.size()));
  if (!keywords_.empty()) throw_no_parameter(keywords_.front().first);
}

shale::dtype to_dtype(const value& type, std::string_view subject) {
  if (type.is<shale::dtype>()) return type.as<shale::dtype>();
  if (type.is<std::string>()) {
    if (const std::optional<shale::dtype> named = parse_dtype(type.as<std::string>()))
      return *named;
    throw error(errc::invalid_argument,
                fmt::format("{}: no dtype '{}'", subject, type.as<std::string>()));
  }
  throw error(errc::invalid_argument, fmt::format("{} must be a dtype, as in float32, got {}",
                                                  subject, type.description()));
}

}  // namespace shale::tools
