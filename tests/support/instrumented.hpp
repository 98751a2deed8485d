// What tests must know of sanitizers.
#pragma once

namespace shale::test {

/// Whether AddressSanitizer or ThreadSanitizer watches this build: shadow memory counts as resident,
/// terabytes of address space are taken, and loops over elements run ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool instrumented = true;
#else
inline constexpr bool instrumented = false;
#endif

}  // namespace shale::test
