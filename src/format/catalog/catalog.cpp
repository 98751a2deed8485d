#include "format/catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"
#include "format/catalog/array_name.hpp"
#include "format/catalog/descriptor.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

// Throws   corrupt: an entry without a name. No list could begin after it, because an empty name
//          stands for the position before the first entry
void require_key(std::string_view key) {
  if (key.empty())
    throw error(errc::corrupt, "the catalog is damaged", {"it holds an array without a name"});
}

// The first key that is greater than all names below a level, whose path ends with '/'.
std::string end_of_level(std::string path) {
  static_assert('/' + 1 == '0');
  path.back() = '0';
  return path;
}

// Callers may print a key, so only valid names of arrays are passed on.
void require_name(std::string_view key) {
  if (const auto problem = problem_of_name(key))
    throw error(errc::corrupt, "the catalog is damaged",
                {"it holds an array " + shale::detail::in_quotes(key), *problem,
                 "`shale verify` lists all damage"});
}

}  // namespace

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
    require_key(cursor.key());
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
  for (const std::string& name : names) require_name(name);
  return names;
}

std::vector<level_entry> list_children(const tree& catalog, std::string_view level,
                                       std::string_view after, std::size_t limit) {
  std::string prefix(level);
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  std::vector<level_entry> children;
  auto cursor = catalog.seek(std::max(std::string_view(prefix), after));
  while (children.size() < limit && cursor.valid() && cursor.key().starts_with(prefix)) {
    require_key(cursor.key());
    require_name(cursor.key());
    const std::size_t slash = cursor.key().find('/', prefix.size());
    const bool is_level = slash != std::string_view::npos;
    std::string name(is_level ? cursor.key().substr(0, slash + 1) : cursor.key());
    if (is_level) cursor = catalog.seek(end_of_level(name));
    else cursor.next();
    if (name > after) children.push_back({std::move(name), is_level});
  }
  return children;
}

}  // namespace shale::format
