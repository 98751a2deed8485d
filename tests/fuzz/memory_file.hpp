// A file in memory with a path in /proc, for readers that need a path. It is fast and needs no
// cleaning.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string>

#include "fuzz/require.hpp"

namespace shale::fuzz {

class memory_file {
 public:
  /// The file disappears with the object. Mappings of it may live longer.
  explicit memory_file(std::span<const std::uint8_t> bytes)
      : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "the system hands out files in memory");
    const auto written = ::write(descriptor_, bytes.data(), bytes.size());
    require(written == static_cast<ssize_t>(bytes.size()), "memory takes what is written");
  }
  ~memory_file() { ::close(descriptor_); }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace shale::fuzz
