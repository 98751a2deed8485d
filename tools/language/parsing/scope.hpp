// The names that an expression can use: constants, dtypes, bound arrays and its own assignments.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "language/values/value.hpp"

namespace shale::tools {

/// Arrays and plain values by the names that an expression uses for them.
using bindings = std::map<std::string, value, std::less<>>;

/// Whether `text` is a keyword of Python, which cannot be a name.
bool is_keyword(std::string_view text) noexcept;

/// Whether --let can bind `text`: it is an identifier of Python and no keyword.
bool is_bindable(std::string_view text) noexcept;

/// A constant (pi, e, inf, nan), a dtype or newaxis; nothing for other names.
std::optional<value> find_constant(std::string_view name);

class scope {
 public:
  /// Lifetime refers to `arrays` and to the names that are assigned
  explicit scope(const bindings& arrays) : arrays_(arrays) {}

  /// Gives `assigned` the name `name`, which may have had another value.
  void assign(std::string_view name, value assigned);

  /// Whether an assignment or a binding has defined `name`.
  bool is_defined(std::string_view name) const;

  /// The value of `name`, if it has one. An assignment hides a binding, and both hide a constant.
  std::optional<value> find(std::string_view name) const;

  /// Advice for an error about an unknown name: it lists the bound names.
  std::string advice() const;

 private:
  const bindings& arrays_;
  std::map<std::string_view, value> assigned_;
};

}  // namespace shale::tools
