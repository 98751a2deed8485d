// Measures how fast a device delivers a file.
#pragma once

#include <cstdint>
#include <string>

namespace shale::tools {

/// The time to read a file once from its device, in file order.
struct disk_speed {
  std::string file;
  std::string method;  ///< "O_DIRECT" or "buffered, page cache dropped"
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// Reads up to `limit_bytes` of `path` in pieces of 8 MiB, without the page cache.
/// Throws   not_found, access_denied, io
disk_speed measure_disk(const std::string& path,
                        std::uint64_t limit_bytes = std::uint64_t{2} << 30);

/// Asks the kernel to drop its cached pages of `path`, so that the next reads come from the device.
/// Dirty pages are written first. Pages that other processes map remain.
void drop_page_cache(const std::string& path) noexcept;

}  // namespace shale::tools
