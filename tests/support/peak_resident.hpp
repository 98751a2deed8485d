// The most memory that this process has had resident at once, pages of files included.
#pragma once

#include <fstream>
#include <string>

namespace shale::test {

/// KiB; -1 where the system does not say.
inline long peak_resident_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (long kib = 0; word == "VmHWM:" && in >> kib) return kib;
  return -1;
}

}  // namespace shale::test
