// Reads the largest resident size that this process has had, including pages of files.
#pragma once

#include <fstream>
#include <string>

namespace shale::test {

/// In KiB; -1 if the system does not report it.
inline long peak_resident_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (long kib = 0; word == "VmHWM:" && in >> kib) return kib;
  return -1;
}

}  // namespace shale::test
