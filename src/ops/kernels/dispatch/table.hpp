// Defines the table of all kernels for one instruction set. Families of kernels fill it.
//
// Each family (arithmetic, casts, …) is one source text. It is compiled once per instruction set,
// into a namespace of that set. The linker keeps one definition of each inline function of the
// program. If it kept one that was compiled for AVX-512, the baseline code would run it on a CPU
// without AVX-512. So units above the baseline must define no symbol that other units define as
// well. They are optimised in every build type, so that their own lambdas are inlined, and they
// keep two rules:
//   isa.1  the only external symbol is the family's `fill_…`; all else is in anonymous namespaces;
//   isa.2  no inline function or template of a header outside src/ops/kernels is used.
// tests/ops/kernels/isa_test.cpp checks isa.1 on the object files.
#pragma once

#include <cstddef>

#include "ops/kernels/operations/operations.hpp"
#include "ops/kernels/operations/random_draw.hpp"

namespace shale::ops::kernels {

inline constexpr int operation_count = static_cast<int>(operation::count_);
inline constexpr int product_sum_count = static_cast<int>(product_sum::count_);
inline constexpr int reduction_count = static_cast<int>(reduction::count_);
inline constexpr int scan_count = static_cast<int>(scan::count_);
inline constexpr int distribution_count = static_cast<int>(distribution::count_);

/// One more than the largest file code of a dtype.
inline constexpr int dtype_limit = 18;

struct kernel_table {
  kernel operations[operation_count][dtype_limit];        ///< by operand dtype
  kernel product_sums[product_sum_count][dtype_limit];    ///< by operand dtype; null if absent
  kernel casts[dtype_limit][dtype_limit];                 ///< [from][to]
  reducer reducers[reduction_count][dtype_limit];         ///< absent if `accumulate` is null
  scanner scanners[scan_count][dtype_limit];              ///< absent if `scan` is null
  random_kernel random[distribution_count][dtype_limit];  ///< absent if `run` is null

  constexpr void set(operation op, dtype type, kernel run) noexcept {
    operations[static_cast<int>(op)][static_cast<int>(type)] = run;
  }
  constexpr void set(product_sum kind, dtype type, kernel run) noexcept {
    product_sums[static_cast<int>(kind)][static_cast<int>(type)] = run;
  }
  constexpr void set_cast(dtype from, dtype to, kernel run) noexcept {
    casts[static_cast<int>(from)][static_cast<int>(to)] = run;
  }
  constexpr void set(reduction kind, dtype type, const reducer& fold) noexcept {
    reducers[static_cast<int>(kind)][static_cast<int>(type)] = fold;
  }
  constexpr void set(scan kind, dtype type, const scanner& entry) noexcept {
    scanners[static_cast<int>(kind)][static_cast<int>(type)] = entry;
  }
  constexpr void set(distribution kind, dtype type, const random_kernel& draws) noexcept {
    random[static_cast<int>(kind)][static_cast<int>(type)] = draws;
  }
};

// Each function overwrites the entries of its family. A table is filled from the baseline upwards,
// so entries that a wider instruction set lacks keep the kernels of the set below.
namespace baseline {
void fill_arithmetic(kernel_table& table);
void fill_float_arithmetic(kernel_table& table);
void fill_comparison(kernel_table& table);
void fill_elementary(kernel_table& table);
void fill_small_floats(kernel_table& table);
void fill_complex_elementary(kernel_table& table);
void fill_casts(kernel_table& table);
void fill_sums(kernel_table& table);
void fill_extrema(kernel_table& table);
void fill_arg_extrema(kernel_table& table);
void fill_moments(kernel_table& table);
void fill_random(kernel_table& table);
void fill_scans(kernel_table& table);
}  // namespace baseline

namespace avx2 {
void fill_arithmetic(kernel_table& table);
void fill_float_arithmetic(kernel_table& table);
void fill_comparison(kernel_table& table);
void fill_elementary(kernel_table& table);
void fill_small_floats(kernel_table& table);
void fill_casts(kernel_table& table);
void fill_sums(kernel_table& table);
void fill_extrema(kernel_table& table);
void fill_arg_extrema(kernel_table& table);
void fill_moments(kernel_table& table);
void fill_random(kernel_table& table);
void fill_scans(kernel_table& table);
}  // namespace avx2

namespace avx512 {
void fill_arithmetic(kernel_table& table);
void fill_float_arithmetic(kernel_table& table);
void fill_comparison(kernel_table& table);
void fill_elementary(kernel_table& table);
void fill_small_floats(kernel_table& table);
void fill_casts(kernel_table& table);
void fill_sums(kernel_table& table);
void fill_extrema(kernel_table& table);
void fill_arg_extrema(kernel_table& table);
void fill_moments(kernel_table& table);
void fill_random(kernel_table& table);
void fill_scans(kernel_table& table);
}  // namespace avx512

}  // namespace shale::ops::kernels
