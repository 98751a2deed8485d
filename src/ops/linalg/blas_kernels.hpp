// Chooses the kernels of OpenBLAS by the features of the CPU, before anything calls them.
//
// OpenBLAS chooses its kernels when the process starts, by a table of CPU models. For a CPU that is
// newer than the table, it may choose kernels for a much older one: kernels for SSE3 on a CPU with
// AVX-512, which are several times as slow. So this module compares the choice with what the CPU
// can run, and replaces it if it uses narrower vectors.
//
// Invariants
//   blas.1  the kernels use the widest vectors that the CPU runs, unless OPENBLAS_CORETYPE is set:
//           the user's own choice is kept
//   blas.2  the environment of the process is as it was before
//   blas.3  kernels that the CPU cannot run are never called: if the user asks for such kernels,
//           products are errors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shale::ops {

/// The vectors that kernels are written for, narrowest first.
enum class vector_width : std::uint8_t { sse, avx, avx2, avx512 };

/// The width of a kernel type of OpenBLAS, such as "SkylakeX".
vector_width width_of_kernels(std::string_view type) noexcept;

/// Throws if OPENBLAS_CORETYPE asked for kernels that this CPU cannot run.
/// Cost     a comparison
/// Throws   unsupported
void check_blas_kernels();

/// The kernel type in use, such as "SkylakeX", and the reason if OpenBLAS did not choose it by the
/// model of the CPU: "Haswell (by the CPU's features; OpenBLAS would take Prescott)".
/// Throws   as check_blas_kernels
std::string blas_kernels();

}  // namespace shale::ops
