// The common body of `main` of every suite.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>

namespace shale::bench {

/// Runs the suite. Prints the text of an exception on standard error, and returns 1 then.
inline int run_suite(int (*suite)(std::span<char*>), int count, char** arguments) {
  try {
    return suite({arguments, static_cast<std::size_t>(count)});
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], problem.what());
    return 1;
  }
}

}  // namespace shale::bench
