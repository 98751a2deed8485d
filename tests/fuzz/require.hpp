// What a harness says when a promise is broken: libFuzzer keeps the input of a program that aborts.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "shale/error.hpp"

namespace shale::fuzz {

/// Aborts, saying what was promised, unless it holds.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

/// What strangers' bytes may be refused with.
inline void require_refusal(const error& failure) {
  const bool refused = failure.code() == errc::corrupt || failure.code() == errc::unsupported;
  if (!refused) std::fprintf(stderr, "%s\n", failure.what());
  require(refused, "hostile bytes are corrupt or unsupported");
}

}  // namespace shale::fuzz
