// What a harness says when a promise is broken: libFuzzer keeps the input of a program that aborts.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace shale::fuzz {

/// Aborts, saying what was promised, unless it holds.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace shale::fuzz
