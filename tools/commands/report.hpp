// The cost of a computation: bytes, seconds, GB/s, memory.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/disk_speed.hpp"

namespace shale::tools {

/// The peak resident memory of this process (VmHWM), including pages of mapped files; nothing if
/// /proc does not tell it.
std::optional<std::uint64_t> peak_resident_bytes();

struct report {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t tiles_decoded = 0;
  std::uint64_t stored_bytes_read = 0;  ///< size of those tiles in their files
  double seconds = 0;
  int threads = 0;
  std::uint64_t memory_bytes = 0;  ///< memory budget
  std::vector<disk_speed> disks;

  /// "4.0 GiB read, 4.0 GiB written in 5.1 s: 1.68 GB/s; peak memory 301 MiB of 256 MiB + 64 MiB"
  std::string to_string() const;
  nlohmann::json to_json() const;
};

}  // namespace shale::tools
