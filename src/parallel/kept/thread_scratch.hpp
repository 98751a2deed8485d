// Lends a thread its scratch memory for a small call.
#pragma once

#include <cstddef>

namespace shale::parallel {

inline constexpr std::size_t thread_scratch_bytes_max = std::size_t{256} << 10;

/// At least `bytes` bytes, at most thread_scratch_bytes_max, at a multiple of 64. They belong to
/// the calling thread and are valid until its next call of this function, so no code of the user
/// may run while they are used.
/// Returns  null if there is no memory or if the thread is ending
std::byte* thread_scratch(std::size_t bytes) noexcept;

}  // namespace shale::parallel
