// Says of every operation what the graph must know to use it: its name in messages, the number of
// its operands, the dtypes in which it computes and which it returns, and how long it takes. The
// table has one row for each operation; no rule depends on the order of the list of operations.
//
// Invariants
//   facts.1  row k describes operation k and is complete: a row that is missing, in another place,
//            or shorter than the others does not compile
//
// Kernels do not include this file (isa.2 in dispatch/table.hpp).
#pragma once

#include <cstddef>

#include "core/widened.hpp"
#include "ops/kernels/operations/operations.hpp"
#include "shale/index.hpp"

namespace shale::ops {

/// The operand dtype of an operation, given the dtype to which its inputs promote.
enum class operand_rule : std::uint8_t {
  same,      ///< that dtype
  floating,  ///< floating and complex dtypes stay; others become float32 (up to 2 bytes) or float64
  division,  ///< floating and complex dtypes stay; others become float64
  rounding,  ///< that dtype; an input of bool or integers is the result, without any kernel
};

/// The dtype of the result, given the operand dtype.
enum class result_rule : std::uint8_t {
  same,       ///< that dtype
  boolean,    ///< bool
  real_part,  ///< complex: the real dtype of its parts; others: that dtype
};

struct operation_facts {
  operation op;
  const char* word;  ///< its name in messages
  int arity;         ///< the number of operands without the output
  operand_rule operands;
  result_rule result;
  index_t additions;  ///< how long it takes for an element of float32, in additions
};

namespace operation_rows {

using op = operation;
using in = operand_rule;
using out = result_rule;

// clang-format off
inline constexpr operation_facts table[] = {
    {op::add,                "+",            2, in::same,     out::same,      1},
    {op::subtract,           "-",            2, in::same,     out::same,      1},
    {op::multiply,           "*",            2, in::same,     out::same,      1},
    {op::divide,             "/",            2, in::division, out::same,      2},
    {op::floor_divide,       "floor_divide", 2, in::same,     out::same,      8},
    {op::remainder,          "%",            2, in::same,     out::same,      8},
    {op::truncated_remainder,"fmod",         2, in::same,     out::same,      8},
    {op::power,              "pow",          2, in::same,     out::same,      16},
    {op::atan2,              "atan2",        2, in::floating, out::same,      16},
    {op::hypotenuse,         "hypot",        2, in::floating, out::same,      16},
    {op::copy_sign,          "copysign",     2, in::floating, out::same,      1},
    {op::next_after,         "nextafter",    2, in::floating, out::same,      1},
    {op::minimum,            "minimum",      2, in::same,     out::same,      1},
    {op::maximum,            "maximum",      2, in::same,     out::same,      1},
    {op::equal,              "==",           2, in::same,     out::boolean,   1},
    {op::not_equal,          "!=",           2, in::same,     out::boolean,   1},
    {op::less,               "<",            2, in::same,     out::boolean,   1},
    {op::less_equal,         "<=",           2, in::same,     out::boolean,   1},
    {op::greater,            ">",            2, in::same,     out::boolean,   1},
    {op::greater_equal,      ">=",           2, in::same,     out::boolean,   1},
    {op::bit_and,            "&",            2, in::same,     out::same,      1},
    {op::bit_or,             "|",            2, in::same,     out::same,      1},
    {op::bit_xor,            "^",            2, in::same,     out::same,      1},
    {op::shift_left,         "<<",           2, in::same,     out::same,      1},
    {op::shift_right,        ">>",           2, in::same,     out::same,      1},
    {op::negative,           "-",            1, in::same,     out::same,      1},
    {op::absolute,           "abs",          1, in::same,     out::real_part, 1},
    {op::square,             "square",       1, in::same,     out::same,      1},
    {op::sign,               "sign",         1, in::same,     out::same,      1},
    {op::square_root,        "sqrt",         1, in::floating, out::same,      2},
    {op::exponential,        "exp",          1, in::floating, out::same,      8},
    {op::exponential_2,      "exp2",         1, in::floating, out::same,      8},
    {op::exponential_minus_1,"expm1",        1, in::floating, out::same,      8},
    {op::logarithm,          "log",          1, in::floating, out::same,      8},
    {op::logarithm_of_1_plus,"log1p",        1, in::floating, out::same,      8},
    {op::logarithm_2,        "log2",         1, in::floating, out::same,      8},
    {op::logarithm_10,       "log10",        1, in::floating, out::same,      8},
    {op::sine,               "sin",          1, in::floating, out::same,      8},
    {op::cosine,             "cos",          1, in::floating, out::same,      8},
    {op::tangent,            "tan",          1, in::floating, out::same,      8},
    {op::arc_sine,           "asin",         1, in::floating, out::same,      8},
    {op::arc_cosine,         "acos",         1, in::floating, out::same,      8},
    {op::arc_tangent,        "atan",         1, in::floating, out::same,      8},
    {op::hyperbolic_sine,    "sinh",         1, in::floating, out::same,      8},
    {op::hyperbolic_cosine,  "cosh",         1, in::floating, out::same,      8},
    {op::hyperbolic_tangent, "tanh",         1, in::floating, out::same,      8},
    {op::area_sine,          "asinh",        1, in::floating, out::same,      8},
    {op::area_cosine,        "acosh",        1, in::floating, out::same,      8},
    {op::area_tangent,       "atanh",        1, in::floating, out::same,      8},
    {op::cube_root,          "cbrt",         1, in::floating, out::same,      8},
    {op::error_function,     "erf",          1, in::floating, out::same,      8},
    {op::logarithm_of_gamma, "lgamma",       1, in::floating, out::same,      64},
    {op::conjugate,          "conj",         1, in::same,     out::same,      1},
    {op::real_part,          "real",         1, in::same,     out::real_part, 1},
    {op::imaginary_part,     "imag",         1, in::same,     out::real_part, 1},
    {op::floor,              "floor",        1, in::rounding, out::same,      1},
    {op::ceiling,            "ceil",         1, in::rounding, out::same,      1},
    {op::truncate,           "trunc",        1, in::rounding, out::same,      1},
    {op::round,              "round",        1, in::rounding, out::same,      1},
    {op::sign_bit,           "signbit",      1, in::floating, out::boolean,   1},
    {op::is_nan,             "isnan",        1, in::same,     out::boolean,   1},
    {op::is_finite,          "isfinite",     1, in::same,     out::boolean,   1},
    {op::is_infinite,        "isinf",        1, in::same,     out::boolean,   1},
    {op::logical_not,        "logical_not",  1, in::same,     out::boolean,   1},
    {op::bit_not,            "~",            1, in::same,     out::same,      1},
    {op::select,             "where",        3, in::same,     out::same,      1},
};
// clang-format on

consteval bool rows_are_in_order_and_complete() {
  std::size_t number = 0;
  for (const operation_facts& row : table)
    if (static_cast<std::size_t>(row.op) != number++ || row.arity < 1 || row.additions < 1)
      return false;
  return number == static_cast<std::size_t>(operation::count_);
}
static_assert(rows_are_in_order_and_complete());  // facts.1

}  // namespace operation_rows

constexpr const operation_facts& facts_of(operation op) noexcept {
  return operation_rows::table[static_cast<std::size_t>(op)];
}

/// About how long an operation on elements of `type` takes for one of them, in additions of
/// float32. Half-precision elements are converted. Complex functions are not vectorised.
constexpr index_t additions_in(operation op, dtype type) noexcept {
  const index_t additions = facts_of(op).additions;
  if (shale::detail::widened(type) != type) return additions + 5;
  if (type == dtype::complex64 || type == dtype::complex128)
    return additions < 8 ? 4 * additions : 16 * additions;
  return additions;
}

}  // namespace shale::ops
