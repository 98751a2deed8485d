// What a piece of an expression stands for while it is being read: an array to be computed, or a
// plain Python value (number, dtype, tuple …) on its way into one.
//
// Plain numbers stay plain for as long as nothing but numbers meets them: `2 * pi / 360` is one
// number, which then adapts to the dtype of the array it meets, as it would in Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "shale/expr.hpp"

namespace shale::tools {

struct none_t {};

/// `np`, whose attributes are the functions, constants and dtypes that also stand alone.
struct namespace_t {};

struct value;

/// What Python makes of round brackets, and of square ones.
enum class sequence_kind : std::uint8_t { tuple, list };

/// Values in a row. Its elements are shared by all copies, so that `x = (x, x)` takes no more memory
/// each time it is said.
class value_tuple {
 public:
  explicit value_tuple(std::vector<value> elements, sequence_kind kind = sequence_kind::tuple);

  /// Lists do as shapes and axes what tuples do; as an index a list means something else.
  sequence_kind kind() const noexcept { return kind_; }

  const std::vector<value>& elements() const noexcept { return *elements_; }

  /// 1, or one more than the deepest tuple among the elements has: how far its destructor recurses.
  int depth() const noexcept { return depth_; }

 private:
  std::shared_ptr<const std::vector<value>> elements_;
  sequence_kind kind_;
  int depth_;
};

struct value {
  using tuple = value_tuple;
  using alternatives = std::variant<expr, bool, std::int64_t, double, none_t, dtype, std::string,
                                    slice, ellipsis_t, namespace_t, tuple>;
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

  /// Whether it can take part in arithmetic without becoming an array.
  bool is_number() const noexcept { return is<bool>() || is<std::int64_t>() || is<double>(); }

  /// "an array", "a tuple", …: for messages.
  std::string_view description() const noexcept;
};

/// Arrays and numbers as an operand.
/// Throws   invalid_argument for everything else
expr to_expr(const value& which);

/// A number as a C++ one. Requires is_number().
double to_double(const value& which);

/// An integer or bool as an index.
/// Throws   invalid_argument naming `what` for everything else
index_t to_index(const value& which, std::string_view what);

/// A tuple (or one integer, as a tuple of one) of integers.
/// Throws   invalid_argument naming `what` for everything else
dims to_dims(const value& which, std::string_view what);

/// Python's operators. Numbers with numbers give numbers, by Python's rules.
/// Throws   invalid_argument: an operand that takes no part in arithmetic, a division of plain
///          integers by zero, an integer result beyond 64 bits, what `expr` throws
value apply_unary(std::string_view symbol, const value& a);
value apply_binary(std::string_view symbol, const value& a, const value& b);

}  // namespace shale::tools
