// A bound on what a piece of code may allocate, where a hostile file says how much it wants.
#pragma once

#include <sys/resource.h>

#include <fstream>

#include "support/instrumented.hpp"

namespace shale::test {

/// Lets the process have 256 MiB of address space more while it lives. Does nothing
/// under sanitizers: they bound single allocations on their own.
class little_memory {
 public:
  little_memory() {
    ::getrlimit(RLIMIT_AS, &before_);
    if (instrumented) return;
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit little{pages * 4096 + (256u << 20), before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &little);
  }
  ~little_memory() { ::setrlimit(RLIMIT_AS, &before_); }
  little_memory(const little_memory&) = delete;
  little_memory& operator=(const little_memory&) = delete;

 private:
  rlimit before_{};
};

}  // namespace shale::test
