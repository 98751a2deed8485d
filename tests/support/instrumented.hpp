// Tells tests whether sanitizers are active.
#pragma once

namespace shale::test {

/// Whether this build uses AddressSanitizer or ThreadSanitizer. Then shadow memory counts as
/// resident, terabytes of address space are in use, and loops over elements take ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool instrumented = true;
#else
inline constexpr bool instrumented = false;
#endif

}  // namespace shale::test
