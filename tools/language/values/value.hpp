// The value of a part of an expression while it is parsed: a lazy array, or a plain Python value
// (number, dtype, tuple …).
//
// An operation on plain numbers gives a plain number: `2 * pi / 360` is one number. Its dtype
// adapts to the array that it is combined with, as in Python. Integers are exact, from -2^63 to
// 2^64 - 1: one beyond int64 is held as a uint64.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "shale/functions.hpp"

namespace shale::tools {

/// Holds each integer of the language, and the result of an operation before it is checked.
__extension__ using wide_integer = __int128;

struct none_t {};

/// The name `np`. Its attributes are the functions, constants and dtypes.
struct namespace_t {};

struct value;

/// Python's sequences: round brackets make a tuple, square brackets make a list.
enum class sequence_kind : std::uint8_t { tuple, list };

/// A sequence of values. All copies share the elements, so that each repetition of `x = (x, x)`
/// takes only constant memory.
class value_tuple {
 public:
  explicit value_tuple(std::vector<value> elements, sequence_kind kind = sequence_kind::tuple);

  /// A list and a tuple are equal as shapes and axes, but differ as an index.
  sequence_kind kind() const noexcept { return kind_; }

  const std::vector<value>& elements() const noexcept { return *elements_; }

  /// The number of nested levels, 1 without a nested tuple. The destructor recurses this deeply.
  int depth() const noexcept { return depth_; }

 private:
  std::shared_ptr<const std::vector<value>> elements_;
  sequence_kind kind_;
  int depth_;
};

struct value {
  using tuple = value_tuple;
  using alternatives = std::variant<expr, bool, std::int64_t, std::uint64_t, double, none_t, dtype,
                                    std::string, slice, ellipsis_t, namespace_t, tuple>;
  alternatives held;

  template <class T>
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint is there
  requires(!std::is_same_v<std::remove_cvref_t<T>, value>) value(T&& from)
      : held(std::forward<T>(from)) {}

  template <class T>
  bool is() const noexcept {
    return std::holds_alternative<T>(held);
  }
  template <class T>
  const T& as() const {
    return std::get<T>(held);
  }

  /// Whether it is an integer, or a bool, which is an integer in Python.
  bool is_integer() const noexcept {
    return is<bool>() || is<std::int64_t>() || is<std::uint64_t>();
  }

  /// Whether it is a plain number.
  bool is_number() const noexcept { return is_integer() || is<double>(); }

  /// "an array", "a tuple", …, for messages.
  std::string_view description() const noexcept;
};

/// An array or a number as an operand.
/// Throws   invalid_argument for every other value
expr to_expr(const value& operand);

/// Requires is_number().
double to_double(const value& number);

/// Requires is_integer().
wide_integer to_integer(const value& number);

/// An integer or bool as an index. `subject` begins the message of an error.
/// Throws   invalid_argument for every other value, and for an integer beyond int64
index_t to_index(const value& number, std::string_view subject);

/// A tuple of integers, or one integer. `subject` begins the message of an error.
/// Throws   invalid_argument for every other value
dims to_dims(const value& numbers, std::string_view subject);

}  // namespace shale::tools
