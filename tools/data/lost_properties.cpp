#include "data/lost_properties.hpp"

#include <fmt/format.h>

#include "data/logical.hpp"
#include "data/name_advice.hpp"
#include "notation/address.hpp"
#include "shale/logical_arrays.hpp"
#include "terminal/table.hpp"

namespace shale::tools {

namespace {

// "12 levels (a, b, …)": the number of the items, and the names of the first.
std::string counted(const std::string& kind, const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < listed_names_max; ++i)
    list += (i > 0 ? ", " : "") + names[i];
  return fmt::format("{} {}{} ({}{})", names.size(), kind, names.size() == 1 ? "" : "s", list,
                     names.size() > listed_names_max ? ", …" : "");
}

}  // namespace

std::vector<std::string> lost_properties(const contents& source,
                                         const std::optional<logical_dtype>& kept) {
  std::vector<std::string> lost;
  if (source.logical && !kept)
    lost.push_back(lost_logical_dtype(*source.logical, source.values.dtype()));
  if (!source.original) return lost;
  std::vector<std::string> keys;
  for (const auto& [key, value] : source.original->attributes)
    if (!source.logical || key != logical_dtype_key) keys.push_back(as_utf8(key));
  if (!keys.empty()) lost.push_back(counted("attribute", keys));
  const array_spec& spec = source.original->spec;
  if (!(spec.fill_value == scalar(0)))
    lost.push_back(fmt::format("fill value {}", spec.fill_value.to_string()));
  return lost;
}

std::vector<std::string> lost_level_attributes(const snapshot& generation) {
  std::vector<std::string> lost;
  std::vector<std::string> levels;
  for (const std::string& level : generation.levels_with_attributes()) {
    if (!level.empty()) {
      levels.push_back(as_utf8(name_in_address(level) + '/'));
      continue;
    }
    std::vector<std::string> keys;
    for (const auto& [key, value] : generation.attributes()) keys.push_back(as_utf8(key));
    if (!keys.empty()) lost.push_back(counted("attribute", keys) + " of the container");
  }
  if (!levels.empty()) lost.push_back("attributes of " + counted("level", levels));
  return lost;
}

}  // namespace shale::tools
