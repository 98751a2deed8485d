// What `main` of every suite does.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>

namespace shale::bench {

/// Runs the suite; whatever it throws is said on standard error and is exit status 1.
inline int run_suite(int (*suite)(std::span<char*>), int count, char** arguments) {
  try {
    return suite({arguments, static_cast<std::size_t>(count)});
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], problem.what());
    return 1;
  }
}

}  // namespace shale::bench
