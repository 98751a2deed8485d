// What one instruction set offers: every kernel, filled family by family.
//
// Each family (arithmetic, casts, …) is one source text, compiled once per instruction set into its
// own namespace. A unit compiled for more than the baseline must not define anything that the
// linker could take in place of a baseline definition, so those units are optimised in every build
// type (even their own lambdas are inlined) and keep to two rules:
//   isa.1  the only external symbol is the family's `fill_…`; all else is in anonymous namespaces;
//   isa.2  no inline function or template of a header outside src/ops/kernels is used.
// tests/ops/kernels/isa_test.cpp checks isa.1 on the object files.
#pragma once

#include <cstddef>

#include "ops/kernels.hpp"

namespace shale::ops::kernels {

inline constexpr int operation_count = static_cast<int>(operation::count_);
inline constexpr int reduction_count = static_cast<int>(reduction::count_);

/// One more than the largest file code of a dtype.
inline constexpr int dtype_limit = 18;

struct kernel_table {
  kernel operations[operation_count][dtype_limit];  ///< by operand dtype
  kernel casts[dtype_limit][dtype_limit];           ///< [from][to]
  reducer reducers[reduction_count][dtype_limit];   ///< absent where `accumulate` is null

  constexpr void set(operation which, dtype type, kernel run) noexcept {
    operations[static_cast<int>(which)][static_cast<int>(type)] = run;
  }
  constexpr void set_cast(dtype from, dtype to, kernel run) noexcept {
    casts[static_cast<int>(from)][static_cast<int>(to)] = run;
  }
  constexpr void set(reduction which, dtype type, const reducer& how) noexcept {
    reducers[static_cast<int>(which)][static_cast<int>(type)] = how;
  }
};

// Each overwrites the entries it has, so a table is filled from the baseline upwards.
namespace baseline {
void fill_arithmetic(kernel_table& table);
void fill_comparison(kernel_table& table);
void fill_elementary(kernel_table& table);
void fill_complex_elementary(kernel_table& table);
void fill_casts(kernel_table& table);
void fill_sums(kernel_table& table);
void fill_extrema(kernel_table& table);
void fill_moments(kernel_table& table);
}  // namespace baseline

namespace avx2 {
void fill_arithmetic(kernel_table& table);
void fill_comparison(kernel_table& table);
void fill_elementary(kernel_table& table);
void fill_casts(kernel_table& table);
void fill_sums(kernel_table& table);
void fill_extrema(kernel_table& table);
void fill_moments(kernel_table& table);
}  // namespace avx2

namespace avx512 {
void fill_arithmetic(kernel_table& table);
void fill_comparison(kernel_table& table);
void fill_elementary(kernel_table& table);
void fill_casts(kernel_table& table);
void fill_sums(kernel_table& table);
void fill_extrema(kernel_table& table);
void fill_moments(kernel_table& table);
}  // namespace avx512

}  // namespace shale::ops::kernels
