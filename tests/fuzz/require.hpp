// Stops a harness when a property does not hold. libFuzzer keeps the input of a program that
// aborts.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "shale/error.hpp"

namespace shale::fuzz {

/// Prints the property and aborts, unless `holds` is true.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

/// The errors with which hostile bytes may be refused.
inline void require_refusal(const error& failure) {
  const bool refused = failure.code() == errc::corrupt || failure.code() == errc::unsupported;
  if (!refused) std::fprintf(stderr, "%s\n", failure.what());
  require(refused, "hostile bytes are corrupt or unsupported");
}

}  // namespace shale::fuzz
