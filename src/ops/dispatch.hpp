// Which kernels this process runs: chosen once, from the CPU and from SHALE_ISA.
#pragma once

#include <string_view>

#include "ops/kernels.hpp"
#include "ops/kernels/table.hpp"

namespace shale::ops {

/// "baseline", "avx2", "avx512".
std::string_view name(isa which) noexcept;

/// Whether this build has kernels for it and this CPU runs them.
bool supports(isa which) noexcept;

/// The kernels for one instruction set, whatever the one in use. It must be supported.
const kernels::kernel_table& kernels_for(isa which) noexcept;

/// Refuses a SHALE_ISA that `active_isa` had to ignore.
/// Cost     a comparison after the first call: once per engine call
/// Throws   invalid_argument for a name that is none, unsupported for one beyond this CPU or build
void check_isa();

/// What a value of SHALE_ISA (null: not set) asks for.
/// Throws   as check_isa
isa choose_isa(const char* wanted);

}  // namespace shale::ops
