#include "array/read_ahead.hpp"

#include <fcntl.h>

#include <algorithm>

namespace shale::arrays {

namespace {

// One request reads at most the device's read-ahead, of which this is the kernel's default; the
// rest of a longer one is dropped silently.
constexpr std::uint64_t request_bytes = 128u << 10;

}  // namespace

void read_ahead(int descriptor, const format::extent& range) noexcept {
  if (descriptor < 0) return;
  for (std::uint64_t at = 0; at < range.bytes; at += request_bytes)
    ::posix_fadvise(descriptor, static_cast<off_t>(range.offset + at),
                    static_cast<off_t>(std::min(request_bytes, range.bytes - at)),
                    POSIX_FADV_WILLNEED);
}

}  // namespace shale::arrays
