#include "array/specification/new_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"
#include "format/catalog/array_name.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

namespace {

[[noreturn]] void refuse(std::string_view name, std::string problem) {
  throw error(errc::invalid_argument,
              fmt::format("{} cannot name an array", detail::in_quotes(name)),
              {std::move(problem)});
}

}  // namespace

void require_new_name(std::string_view name) {
  format::require_valid_name(name);
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find('/', start), name.size());
    const std::string_view level = name.substr(start, end - start);
    if (level.empty() && start == 0) refuse(name, "it begins with '/', which separates levels");
    if (level.empty() && end == name.size())
      refuse(name, "it ends with '/', which separates levels");
    if (level.empty())
      refuse(name, fmt::format("a level between '/' and '/' is empty, byte {}", start));
    if (level.find_first_not_of('.') == std::string_view::npos)
      refuse(name, fmt::format("the level '{}' at byte {} is of periods only", level, start));
    start = end + 1;
  }
}

}  // namespace shale::arrays
