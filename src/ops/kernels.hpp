// The tables of kernels: [operation][dtype], filled once for the CPU at hand.
//
// A kernel's operands share one dtype (the *operand dtype*) except where said; mixed dtypes are the
// tape's affair, which inserts casts. float16 and bfloat16 have no arithmetic kernels of their own:
// the tape computes them in float32 and rounds after each operation.
#pragma once

#include <cstdint>

#include "parallel/kernel.hpp"
#include "shale/dtype.hpp"

namespace shale::ops {

using parallel::kernel;

enum class operation : std::uint8_t {
  // binary: out, a, b
  add,
  subtract,
  multiply,
  divide,        // floating and complex
  floor_divide,  // real; integers by zero give 0
  remainder,     // real; sign of the divisor; integers by zero give 0
  power,         // integers wrap; a negative integer exponent gives 0 (or ±1 for bases ±1)
  atan2,         // float32, float64
  hypotenuse,    // float32, float64
  minimum,       // real and bool; NaN if either is NaN
  maximum,
  equal,  // result bool from here on …
  not_equal,
  less,  // real and bool
  less_equal,
  greater,
  greater_equal,  // … to here
  bit_and,        // bool and integers
  bit_or,
  bit_xor,
  // unary: out, a
  negative,
  absolute,  // complex: result is the real dtype of its parts
  square,
  sign,
  square_root,  // floating and complex from here on …
  exponential,
  logarithm,
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
  hyperbolic_tangent,  // … to here
  floor,               // float32, float64
  ceiling,
  truncate,
  round,        // ties to even
  is_nan,       // floating and complex; result bool
  is_finite,    // result bool
  logical_not,  // any; result bool
  bit_not,      // integers and bool
  // ternary
  select,  // out, condition (bool), a, b
  count_
};

/// Operands besides the output.
int arity(operation which) noexcept;

/// The dtype of the result for operands of dtype `type`.
dtype result_dtype(operation which, dtype type) noexcept;

/// Null where the operation has no kernel for that operand dtype.
kernel find_kernel(operation which, dtype type) noexcept;

/// out (dtype `to`), in (dtype `from`), by the rules of `convert`; every pair exists. The same
/// dtype twice is a copy.
kernel find_cast(dtype from, dtype to) noexcept;

enum class reduction : std::uint8_t {
  sum,  // bool and integers in 64 bits (wrapping); floating in double or better
  product,
  minimum,  // NaN wins
  maximum,
  mean,       // real and complex; result floating
  variance,   // moments: parameter is the correction
  deviation,  // its square root
  any,
  all,
  count_nonzero,
  count_
};

/// One reduction of values of one dtype: a state for each result, folded from blocks.
/// The tree over blocks is the engine's and fixed; within a block the order is fixed by virtual
/// lanes, so that results have the same bits for every ISA and thread count.
struct reducer {
  std::size_t state_bytes;  ///< a multiple of 8; states are 64-byte aligned arrays
  dtype result;

  /// Makes `count` consecutive states empty.
  void (*start)(std::byte* states, index_t count);

  /// data[0] states (strides 0 along axes that are folded), data[1] values; two operands.
  kernel accumulate;

  /// into[i] = into[i] followed by from[i], for `count` consecutive states.
  void (*merge)(std::byte* into, const std::byte* from, index_t count);

  /// Results of dtype `result`, contiguous. `parameter` as the reduction defines it.
  void (*finish)(const std::byte* states, std::byte* results, index_t count, double parameter);
};

/// Null where there is none for that dtype (float16 and bfloat16 do have reducers; float8 not).
const reducer* find_reducer(reduction which, dtype type) noexcept;

/// Instruction sets that kernels are built for.
enum class isa : std::uint8_t { baseline, avx2, avx512 };

/// The one in use: the best of the CPU, or what SHALE_ISA (baseline, avx2, avx512) asks for.
isa active_isa() noexcept;

}  // namespace shale::ops
