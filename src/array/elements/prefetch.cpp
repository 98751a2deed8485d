#include "array/elements/prefetch.hpp"

#include <fcntl.h>

#include <algorithm>

#include "storage/system/pages.hpp"

namespace shale::arrays {

using detail::will_need_bytes_max;

void prefetch_range(int descriptor, const format::extent& range) noexcept {
  if (descriptor < 0) return;
  for (std::uint64_t offset = 0; offset < range.bytes; offset += will_need_bytes_max)
    ::posix_fadvise(
        descriptor, static_cast<off_t>(range.offset + offset),
        static_cast<off_t>(std::min<std::uint64_t>(will_need_bytes_max, range.bytes - offset)),
        POSIX_FADV_WILLNEED);
}

}  // namespace shale::arrays
