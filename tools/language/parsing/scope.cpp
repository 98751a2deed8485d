#include "language/parsing/scope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>

namespace shale::tools {

namespace {

constexpr std::array<std::string_view, 15> keywords{"and",  "or",     "not",   "if",     "else",
                                                    "for",  "lambda", "in",    "is",     "def",
                                                    "None", "True",   "False", "import", "return"};

struct constant {
  std::string_view name;
  double number;
};

constexpr constant constants[] = {{"pi", std::numbers::pi},
                                  {"e", std::numbers::e},
                                  {"inf", std::numeric_limits<double>::infinity()},
                                  {"nan", std::numeric_limits<double>::quiet_NaN()}};

}  // namespace

bool is_keyword(std::string_view text) noexcept {
  return std::find(keywords.begin(), keywords.end(), text) != keywords.end();
}

bool is_bindable(std::string_view text) noexcept {
  if (text.empty() || is_keyword(text)) return false;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return is_letter(text.front()) && std::all_of(text.begin(), text.end(), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9');
         });
}

std::optional<value> find_constant(std::string_view name) {
  if (name == "newaxis") return value{none_t{}};
  for (const constant& candidate : constants)
    if (candidate.name == name) return value{candidate.number};
  if (const std::optional<dtype> type = parse_dtype(name)) return value{*type};
  return std::nullopt;
}

void scope::assign(std::string_view name, value assigned) {
  assigned_.insert_or_assign(name, std::move(assigned));
}

bool scope::is_defined(std::string_view name) const {
  return assigned_.contains(name) || arrays_.contains(name);
}

std::optional<value> scope::find(std::string_view name) const {
  if (const auto found = assigned_.find(name); found != assigned_.end()) return found->second;
  if (const auto found = arrays_.find(name); found != arrays_.end()) return found->second;
  return find_constant(name);
}

std::string scope::advice() const {
  if (arrays_.empty()) return "bind arrays with --let NAME=FILE:ARRAY";
  std::string names;
  for (const auto& [name, array] : arrays_) names += (names.empty() ? "" : ", ") + name;
  return fmt::format("--let has bound {}", names);
}

}  // namespace shale::tools
