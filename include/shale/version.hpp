// What this build of Shale is.
#pragma once

#include <string_view>

namespace [[gnu::visibility("default")]] shale {

/// "0.1.0": the library that is running, which may be newer than the headers.
std::string_view version() noexcept;

/// The container format that this build writes, and the latest that it reads.
int format_version() noexcept;

/// The kernels that this process runs: "baseline", "avx2" or "avx512".
/// Throws   invalid_argument, unsupported (SHALE_ISA asks for what is not there)
std::string_view instruction_set();

}  // namespace shale
