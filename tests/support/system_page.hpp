// The size of the system's pages, for tests that depend on whole pages.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace shale::test {

inline std::size_t system_page_bytes() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace shale::test
