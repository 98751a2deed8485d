#include "storage/files/whole_path.hpp"

#include <fmt/format.h>

#include "shale/error.hpp"

namespace shale::detail {

void require_whole_path(std::string_view path) {
  const std::size_t position = path.find('\0');
  if (position == std::string_view::npos) return;
  throw error(errc::invalid_argument, "a path cannot hold a zero byte",
              {fmt::format("got '{}'", path),
               fmt::format("byte {} of {} is zero: the system would take '{}' for all of it",
                           position, path.size(), path.substr(0, position))});
}

}  // namespace shale::detail
