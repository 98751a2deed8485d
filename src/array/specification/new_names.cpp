#include "array/specification/new_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "array/specification/level_records.hpp"
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
  require_new_path(name);
  if (is_reserved_name(name))
    refuse(name,
           "its last level is reserved: an array of that name holds the attributes of a level");
}

void require_new_path(std::string_view name) {
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
    if (end < name.size() && is_reserved_name(level))
      refuse(name, fmt::format("the level '{}' at byte {} is reserved: an array of that name holds "
                               "the attributes of a level",
                               level, start));
    start = end + 1;
  }
}

void require_free_path(std::string_view name, std::string_view given_up, const name_list& list) {
  const auto refuse_path = [&](const std::string& problem) {
    throw error(errc::already_exists,
                fmt::format("{} cannot name an array", detail::in_quotes(name)), {problem});
  };
  for (std::size_t end = name.find('/'); end != name.npos; end = name.find('/', end + 1)) {
    const std::string_view level = name.substr(0, end);
    const std::vector<std::string> first = list(level, 1);
    if (level != given_up && !first.empty() && first.front() == level)
      refuse_path(fmt::format("its level {} is an array", detail::in_quotes(level)));
  }
  // Two names are enough, because at most one of them is `given_up`.
  for (const std::string& below : list(std::string(name) + '/', 2))
    if (below != given_up)
      refuse_path(
          fmt::format("it is the name of a level, which holds {}", detail::in_quotes(below)));
}

}  // namespace shale::arrays
