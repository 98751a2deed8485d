// A range of bytes of a file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shale::detail {

struct file_extent {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

}  // namespace shale::detail
