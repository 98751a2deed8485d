// Tells tests whether sanitizers are active.
#pragma once

#include <cstdint>

namespace shale::test {

/// Whether this build uses AddressSanitizer or ThreadSanitizer. Then shadow memory counts as
/// resident, terabytes of address space are in use, and loops over elements take ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool instrumented = true;
#else
inline constexpr bool instrumented = false;
#endif

/// How many random cases a test tries: `all`, or a fifth of them under ThreadSanitizer. It looks for
/// races, which do not depend on the elements, and the loops of an oracle take most of its time.
constexpr std::uint64_t cases(std::uint64_t all) {
#if defined(__SANITIZE_THREAD__)
  return (all + 4) / 5;
#else
  return all;
#endif
}

}  // namespace shale::test
