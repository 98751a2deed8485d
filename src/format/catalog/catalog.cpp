#include "format/catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"
#include "format/catalog/array_name.hpp"
#include "format/catalog/descriptor.hpp"
#include "shale/error.hpp"

namespace shale::format {

std::optional<array_record> find_array(const tree& catalog, std::string_view name,
                                       std::uint64_t end_of_file) {
  if (name.empty() || name.size() > name_bytes_max) return std::nullopt;
  const auto stored = catalog.find(name);
  if (!stored) return std::nullopt;
  array_record record = with_context([&] { return "array " + shale::detail::in_quotes(name); },
                                     [&] { return decode_descriptor(*stored, end_of_file); });
  if (record.name != name)
    throw error(errc::corrupt, "an array is stored under another array's name",
                {fmt::format("{} under {}", shale::detail::in_quotes(record.name),
                             shale::detail::in_quotes(name))});
  return record;
}

std::vector<std::string> list_arrays(const tree& catalog, std::string_view prefix,
                                     std::string_view after, std::size_t limit) {
  std::vector<std::string> names;
  if (limit == 0) return names;
  for (auto cursor = catalog.seek(std::max(prefix, after)); cursor.valid(); cursor.next()) {
    if (cursor.key().empty())
      throw error(errc::corrupt, "the catalog is damaged", {"it holds an array without a name"});
    if (cursor.key() == after) continue;
    if (!cursor.key().starts_with(prefix)) break;
    names.emplace_back(cursor.key());
    if (names.size() == limit) break;
  }
  return names;
}

std::vector<std::string> list_names(const tree& catalog, std::string_view prefix,
                                    std::string_view after, std::size_t limit) {
  auto names = list_arrays(catalog, prefix, after, limit);
  for (const std::string& name : names)
    if (const auto problem = problem_of_name(name))
      throw error(errc::corrupt, "the catalog is damaged",
                  {"it holds an array " + shale::detail::in_quotes(name), *problem});
  return names;
}

}  // namespace shale::format
