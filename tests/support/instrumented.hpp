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

/// How many random cases a test tries: `all`, or a fifth of them under ThreadSanitizer. It looks
/// for races, which do not depend on the elements, and the loops of an oracle take most of its
/// time.
constexpr std::uint64_t cases(std::uint64_t all) {
#if defined(__SANITIZE_THREAD__)
  return (all + 4) / 5;
#else
  return all;
#endif
}

/// How often a test repeats what differs by chance alone, such as crashes of one history or forks
/// beside busy threads: `all` times, or a fourth of them under a sanitizer. A sanitizer looks at
/// memory and threads, which every repetition uses alike. The release build repeats all.
constexpr int repeats(int all) { return instrumented ? (all + 3) / 4 : all; }

/// Whether a test leaves out one of many things that it tries one after the other, such as the
/// writes in which a writer dies: three of four under a sanitizer, by chance, and none in the
/// release build. Not for hostile input: each damaged byte may lead to an access that
/// AddressSanitizer alone sees.
template <class Random>
bool is_left_out(Random& random) {
  return instrumented && random() % 4 != 0;
}

}  // namespace shale::test
