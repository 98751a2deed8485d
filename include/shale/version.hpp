// Identifies this build of Shale.
#pragma once

#include <string_view>

namespace [[gnu::visibility("default")]] shale {

/// The version of the running library, "0.1.0". It may be newer than the headers.
std::string_view version() noexcept;

/// The version of the container format that this build writes. It reads this one and older ones.
int format_version() noexcept;

/// The instruction set of the kernels that this process runs: "baseline", "avx2" or "avx512".
/// Throws   invalid_argument (SHALE_ISA names no instruction set), unsupported (this CPU, or this
///          build, does not have the one that SHALE_ISA names)
std::string_view instruction_set();

}  // namespace shale
