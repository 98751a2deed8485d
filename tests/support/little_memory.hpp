// Limits the memory that a piece of code can allocate, for tests with hostile files that declare
// large sizes.
#pragma once

#include <sys/resource.h>

#include <fstream>

#include "support/instrumented.hpp"

namespace shale::test {

/// While it lives, the process can get only this much more address space. Does nothing under
/// sanitizers, which limit single allocations themselves.
class little_memory {
 public:
  explicit little_memory(rlim_t more_bytes = rlim_t{256} << 20) {
    ::getrlimit(RLIMIT_AS, &before_);
    if (instrumented) return;
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit little{pages * 4096 + more_bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &little);
  }
  ~little_memory() { ::setrlimit(RLIMIT_AS, &before_); }
  little_memory(const little_memory&) = delete;
  little_memory& operator=(const little_memory&) = delete;

 private:
  rlimit before_{};
};

}  // namespace shale::test
