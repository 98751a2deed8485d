// The arguments of one call in an expression, handed out one parameter at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "value.hpp"

namespace shale::tools {

/// A function asks for its parameters in order, by name: each takes the next positional argument,
/// else the keyword argument of that name. What is left over at the end was not asked for.
/// Throws   invalid_argument from every member, naming function and parameter
class arguments {
 public:
  using keyword = std::pair<std::string_view, value>;

  arguments(std::string_view function, std::vector<value> positional, std::vector<keyword> keywords)
      : function_(function), positional_(std::move(positional)), keywords_(std::move(keywords)) {}

  std::string_view function() const noexcept { return function_; }

  /// The argument, or nothing if the call leaves it out.
  std::optional<value> optional(std::string_view parameter);
  value required(std::string_view parameter);

  /// As `required`, as an operand.
  expr array(std::string_view parameter);

  index_t index(std::string_view parameter);
  index_t index(std::string_view parameter, index_t otherwise);
  dims shape(std::string_view parameter);
  bool flag(std::string_view parameter, bool otherwise);
  double real(std::string_view parameter, double otherwise);

  /// A plain number.
  scalar number(std::string_view parameter);

  /// Absent and None alike give nothing.
  std::optional<dims> axes(std::string_view parameter);
  std::optional<shale::dtype> type(std::string_view parameter);

  /// All positional arguments that are left, as integers: reshape(a, 2, 3) beside reshape(a, (2,
  /// 3)).
  dims rest_or_shape(std::string_view parameter);

  std::size_t positional_left() const noexcept { return positional_.size() - next_; }

  /// Throws   invalid_argument unless every argument has been taken
  void finish() const;

 private:
  std::string describe(std::string_view parameter) const;

  std::string_view function_;
  std::vector<value> positional_;
  std::vector<keyword> keywords_;
  std::size_t next_ = 0;
};

/// A dtype, or its name as a string.
shale::dtype to_dtype(const value& which, std::string_view what);

}  // namespace shale::tools
