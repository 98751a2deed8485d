// What a computation cost: bytes, seconds, GB/s, memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shale/executor.hpp"

namespace shale::tools {

/// Most bytes of memory this process has had resident at once: VmHWM, which counts pages of mapped
/// files too. Nothing where /proc does not say.
std::optional<std::uint64_t> peak_resident_bytes();

class stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// How fast a file comes off its device, read once from front to back.
struct disk_speed {
  std::string file;
  std::string method;  ///< "O_DIRECT" or "buffered, page cache dropped"
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// Reads up to `limit_bytes` of `path` past the page cache, in 8 MiB pieces.
/// Throws   not_found, access_denied, io
disk_speed measure_disk(const std::string& path,
                        std::uint64_t limit_bytes = std::uint64_t{2} << 30);

/// Asks the kernel to forget its cached pages of `path`, so that the next reads come from the
/// device. Writes dirty ones first. Pages that other processes map stay.
void drop_page_cache(const std::string& path) noexcept;

struct report {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t tiles_decoded = 0;
  std::uint64_t stored_bytes_read = 0;  ///< of those tiles, in their files
  double seconds = 0;
  int threads = 0;
  std::uint64_t memory_bytes = 0;  ///< the budget
  std::vector<disk_speed> disks;

  /// "4.0 GiB read, 4.0 GiB written in 5.1 s: 1.68 GB/s; peak memory 301 MiB of 256 MiB + 64 MiB"
  std::string to_string() const;
  nlohmann::json to_json() const;
};

}  // namespace shale::tools
