#include "storage/system/pages.hpp"

#include <unistd.h>

namespace shale::detail {

std::size_t system_page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace shale::detail
