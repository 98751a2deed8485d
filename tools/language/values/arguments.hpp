// The arguments of one call in an expression, taken by one parameter at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "language/values/value.hpp"

namespace shale::tools {

/// A function takes the arguments of its parameters in order. A parameter takes the next positional
/// argument, or else the keyword argument with its name. Arguments that remain are an error.
/// Throws   invalid_argument from every member, with the names of function and parameter
class arguments {
 public:
  using keyword = std::pair<std::string_view, value>;

  arguments(std::string_view function, std::vector<value> positional, std::vector<keyword> keywords)
      : function_(function), positional_(std::move(positional)), keywords_(std::move(keywords)) {}

  std::string_view function() const noexcept { return function_; }

  /// The argument; nothing if the call does not give it.
  std::optional<value> optional(std::string_view parameter);
  value required(std::string_view parameter);

  /// An argument that must be an operand: an array, a number or a list of numbers.
  expr array(std::string_view parameter);
  std::optional<expr> optional_array(std::string_view parameter);  ///< nothing also for None
  expr index_array(std::string_view parameter);                    ///< also a list of integers

  index_t index(std::string_view parameter);
  index_t index(std::string_view parameter, index_t otherwise);
  dims shape(std::string_view parameter);
  bool flag(std::string_view parameter, bool otherwise);
  double real(std::string_view parameter, double otherwise);
  std::optional<double> optional_real(std::string_view parameter);  ///< nothing also for None

  /// The meaning of the word that the argument must be. If the call does not give it, it is
  /// `otherwise`, or the first meaning.
  template <class Meaning, std::size_t count>
  Meaning choice(std::string_view parameter,
                 const std::pair<std::string_view, Meaning> (&choices)[count],
                 std::optional<std::type_identity_t<Meaning>> otherwise = std::nullopt) {
    const std::optional<value> given = optional(parameter);
    if (!given) return otherwise.value_or(choices[0].second);
    std::vector<std::string_view> words;
    for (const auto& [word, meaning] : choices) {
      if (given->is<std::string>() && given->as<std::string>() == word) return meaning;
      words.push_back(word);
    }
    throw_no_choice(parameter, *given, words);
  }

  /// An argument that must be a number, or an array of rank 0, which is evaluated.
  scalar number(std::string_view parameter);
  std::optional<scalar> optional_number(std::string_view parameter);  ///< nothing also for None

  /// Nothing if the call does not give the argument, or gives None.
  std::optional<index_t> axis(std::string_view parameter);
  std::optional<dims> axes(std::string_view parameter);
  std::optional<shale::dtype> type(std::string_view parameter);

  /// All remaining positional arguments as integers, as in reshape(a, 2, 3); or one shape, as in
  /// reshape(a, (2, 3)).
  dims integers_or_shape(std::string_view parameter);

  std::size_t positional_left() const noexcept { return positional_.size() - next_; }

  /// Checks that the signature names the parameters of all keyword arguments. A function may
  /// compute for a long time before `finish` finds an argument that remains.
  void require_parameters_of(std::string_view signature) const;

  /// Throws   invalid_argument if an argument remains
  void finish() const;

 private:
  std::string describe(std::string_view parameter) const;
  [[noreturn]] void throw_no_parameter(std::string_view parameter) const;
  [[noreturn]] void throw_no_choice(std::string_view parameter, const value& given,
                                    const std::vector<std::string_view>& words) const;
  expr array_of(const value& found, std::string_view parameter) const;
  double real_of(const value& found, std::string_view parameter) const;
  scalar number_of(const value& found, std::string_view parameter) const;

  std::string_view function_;
  std::vector<value> positional_;
  std::vector<keyword> keywords_;
  std::size_t next_ = 0;
};

/// A dtype, or its name as a string. `subject` begins the message of an error.
/// Throws   invalid_argument for every other value
shale::dtype to_dtype(const value& type, std::string_view subject);

}  // namespace shale::tools
