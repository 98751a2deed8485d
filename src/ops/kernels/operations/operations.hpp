// Lists the operations and reductions that kernels compute, and the dtypes of their operands and
// results. The order of the operations has no meaning; operation_facts.hpp has the rules of each.
//
// A kernel's operands have one dtype, the *operand dtype*, unless the list says otherwise. For
// mixed dtypes the graph inserts casts. float16 and bfloat16 have no arithmetic kernels: the graph
// computes in float32 and rounds after each operation, unless a kernel needs no arithmetic.
#pragma once

#include <cstdint>

#include "parallel/blocks/kernel.hpp"
#include "shale/dtype.hpp"

namespace shale::ops {

using parallel::kernel;

enum class operation : std::uint8_t {
  // binary: out, a, b
  add,
  subtract,
  multiply,
  divide,               // floating and complex
  floor_divide,         // real; integers by zero give 0
  remainder,            // real; sign of the divisor; integers by zero give 0
  truncated_remainder,  // real; sign of the dividend, as C's fmod; integers by zero give 0
  power,                // integers wrap; a negative integer exponent gives 0 (or ±1 for bases ±1)
  atan2,                // float32, float64
  hypotenuse,           // float32, float64
  copy_sign,            // floating, also float16 and bfloat16
  next_after,           // floating, also float16 and bfloat16
  minimum,              // real and bool; NaN if either is NaN
  maximum,              // real and bool; NaN if either is NaN
  // comparisons: result bool
  equal,
  not_equal,
  // comparisons of real numbers and bools: result bool
  less,
  less_equal,
  greater,
  greater_equal,
  // binary, on the bits of bools and integers
  bit_and,
  bit_or,
  bit_xor,
  shift_left,   // integers; by the width or more, or by a negative number: moves all bits out
  shift_right,  // integers; the sign is repeated
  // unary: out, a
  negative,
  absolute,  // complex: result is the real dtype of its parts
  square,
  sign,
  // unary functions of floating and complex numbers
  square_root,
  exponential,
  exponential_2,        // 2^a
  exponential_minus_1,  // e^a - 1
  logarithm,
  logarithm_of_1_plus,  // log(1 + a)
  logarithm_2,
  logarithm_10,
  sine,
  cosine,
  tangent,
  arc_sine,
  arc_cosine,
  arc_tangent,
  hyperbolic_sine,
  hyperbolic_cosine,
  hyperbolic_tangent,
  area_sine,     // the inverse of hyperbolic_sine
  area_cosine,   // the inverse of hyperbolic_cosine
  area_tangent,  // the inverse of hyperbolic_tangent
  // other unary operations
  cube_root,           // float32, float64
  error_function,      // float32, float64
  logarithm_of_gamma,  // log |gamma(a)|; float32, float64
  conjugate,           // complex
  real_part,           // complex; result the real dtype of its parts
  imaginary_part,      // complex; result the real dtype of its parts
  floor,               // float32, float64
  ceiling,             // float32, float64
  truncate,            // float32, float64
  round,               // float32, float64; ties to even
  sign_bit,            // floating; result bool
  is_nan,              // floating and complex; result bool
  is_finite,           // bool, integers, floating and complex; result bool
  is_infinite,         // floating and complex; result bool
  logical_not,         // any; result bool
  bit_not,             // integers and bool
  // ternary
  select,  // out, condition (bool), a, b
  count_
};

/// A product and the sum or difference that reads it, in one kernel. Its operands are out, a, b and
/// c. The product is rounded, too, so the results are those of two operations. Only evaluation uses
/// these; no graph contains them.
enum class product_sum : std::uint8_t {
  add,            // a * b + c
  subtract,       // a * b - c
  subtract_from,  // c - a * b
  count_
};

/// The number of operands without the output.
int arity(operation op) noexcept;

/// The dtype of the result for operands of dtype `type`.
dtype result_dtype(operation op, dtype type) noexcept;

enum class reduction : std::uint8_t {
  sum,  // bool and integers in 64 bits (wrapping); floating in double or better
  product,
  minimum,    // NaN if any value is NaN
  maximum,    // NaN if any value is NaN
  mean,       // real and complex; result floating
  variance,   // moments: parameter is the correction
  deviation,  // its square root
  any,
  all,
  count_nonzero,
  arg_minimum,  // real and bool; the position of the first minimum, or of the first NaN (int64)
  arg_maximum,  // real and bool; the position of the first maximum, or of the first NaN (int64)
  count_
};

/// The name of the public function, for messages.
const char* name_of(reduction kind) noexcept;

/// Whether the bits of a result depend on the order in which values of that dtype are folded. Sums
/// and products of integers and bools do not, because they wrap.
inline bool depends_on_order(reduction kind, dtype type) {
  if (kind == reduction::sum || kind == reduction::product)
    return !is_integer(type) && type != dtype::boolean;
  return kind == reduction::mean || kind == reduction::variance || kind == reduction::deviation;
}

/// One reduction of values of one dtype. Every result has a state, and blocks of values are folded
/// into states. The engine merges the states of different units in a fixed tree. Within a block,
/// virtual lanes fix the order (see folds/folds.hpp). So results have the same bits for every
/// instruction set and any number of threads.
struct reducer {
  std::size_t state_bytes;  ///< a multiple of 8; states are 64-byte aligned arrays
  dtype result;

  /// Makes `count` consecutive states empty.
  void (*start)(std::byte* states, index_t count);

  /// Folds a block of values into states. It has two operands: data[0] are states, with stride 0
  /// along folded axes, and data[1] are values. If `reads_positions`, it has a third operand:
  /// data[2] is an int64, the position of the first value. Its strides are the steps between
  /// positions. They are not negative, and 0 along kept axes.
  kernel accumulate;

  /// Merges from[i] into into[i] for `count` consecutive states. The values that were folded into
  /// into[i] come first.
  void (*merge)(std::byte* into, const std::byte* from, index_t count);

  /// Writes `count` contiguous results of dtype `result`. The reduction defines `parameter`.
  void (*finish)(const std::byte* states, std::byte* results, index_t count, double parameter);

  /// Whether the result depends on the positions of values. A value's position is its row-major
  /// index among the values that are folded into one result.
  bool reads_positions;
};

enum class scan : std::uint8_t { sum, product, minimum, maximum, count_ };

/// The name of the public function, for messages.
const char* name_of(scan kind) noexcept;

/// The reduction whose states a scan goes through.
constexpr reduction reduction_of(scan kind) noexcept {
  switch (kind) {
    case scan::product:
      return reduction::product;
    case scan::minimum:
      return reduction::minimum;
    case scan::maximum:
      return reduction::maximum;
    default:
      return reduction::sum;
  }
}

/// One scan of values of one dtype: every result is the reduction of a value and of those before
/// it.
struct scanner {
  dtype result;

  /// Scans a block of values. data[0] are results, data[1] are states of `reduction_of` the scan,
  /// and data[2] are values. States have stride 0 along the scanned axis. At the beginning they
  /// hold what lies before the block, at the end they include it. Results may replace values of the
  /// same layout.
  kernel scan;
};

}  // namespace shale::ops
