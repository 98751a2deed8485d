// Chooses the kernels that this process runs, once, by the CPU and by the variable SHALE_ISA.
#pragma once

#include <string_view>

#include "ops/kernels/dispatch/table.hpp"
#include "ops/kernels/dispatch/window_table.hpp"

namespace shale::ops {

/// The kernel of an operation for an operand dtype; null if there is none.
kernel find_kernel(operation op, dtype type) noexcept;

/// The kernel of a product and the sum that reads it, for an operand dtype; null if there is none.
kernel find_kernel(product_sum kind, dtype type) noexcept;

/// The kernel that converts from one dtype to another by the rules of `convert`. Operand 0 is the
/// output. There is a kernel for every pair of dtypes; with two equal dtypes it copies.
kernel find_cast(dtype from, dtype to) noexcept;

/// The reducer for a dtype; null if there is none. float16 and bfloat16 have reducers, float8 has
/// none.
const reducer* find_reducer(reduction kind, dtype type) noexcept;

/// The scanner for a dtype; null if there is none. Sums of integers and bool give 64 bits.
const scanner* find_scanner(scan kind, dtype type) noexcept;

/// The kernels that draw from a distribution in a dtype that random_draw.hpp lists for it.
const random_kernel& find_random_kernel(distribution kind, dtype type) noexcept;

/// The kernel of the sums of `correlate` in a dtype; null if there is none. float16 and bfloat16
/// have none: they are computed in float32.
window_kernel find_window_kernel(dtype type) noexcept;

/// Instruction sets that kernels are built for.
enum class isa : std::uint8_t { baseline, avx2, avx512 };

/// The instruction set in use: the best one of this CPU, or the one that SHALE_ISA (baseline, avx2
/// or avx512) names.
isa active_isa() noexcept;

/// "baseline", "avx2", "avx512".
std::string_view name(isa set) noexcept;

/// Whether this build has kernels for the instruction set and this CPU can run them.
bool supports(isa set) noexcept;

/// The kernels for a supported instruction set, which need not be the one in use.
const kernels::kernel_table& kernels_for(isa set) noexcept;
const kernels::window_table& window_kernels_for(isa set) noexcept;

/// Throws if SHALE_ISA has a value that `active_isa` had to ignore. Every engine call does this
/// once.
/// Cost     a comparison after the first call
/// Throws   invalid_argument (no name of an instruction set), unsupported (by this CPU or build)
void check_isa();

/// The instruction set for a value of SHALE_ISA; null means that it is not set.
/// Throws   as check_isa
isa choose_isa(const char* wanted);

}  // namespace shale::ops
