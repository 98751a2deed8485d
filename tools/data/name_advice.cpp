#include "data/name_advice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shale::tools {

void explain_names(error& failure, const std::string& file, const snapshot& generation,
                   const std::string& wanted) {
  std::string typed;
  if (generation.find(wanted)) return;  // the array exists: the error is about part of it
  for (const std::string& name : generation.close_names(wanted))
    if (name_in_address(name) != name) typed += (typed.empty() ? "" : " or ") + label(file, name);
  if (!typed.empty()) failure.add_detail("typed as " + typed);
}

array find_array(const snapshot& generation, const std::string& name, const address& source) {
  if (const std::optional<array> found = generation.find(name)) return *found;
  try {
    return generation.at(name);
  } catch (error& failure) {
    if (source.index) {
      const std::string_view typed = std::string_view(source.text).substr(source.file.size() + 1);
      if (generation.find(typed))
        failure.add_detail(
            fmt::format("the array '{}' is written {}", typed, label(source.file, typed)));
    } else if (name.find('[') != std::string::npos) {
      failure.add_detail("'[[' begins no slice: it is a '[' in the name");
    }
    explain_names(failure, source.file, generation, name);
    throw;
  }
}

std::string list_of_names(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), listed_names_max); ++i)
    list += (i > 0 ? ", " : "") + name_in_address(names[i]);
  if (names.size() > listed_names_max) list += ", …";
  return list;
}

bool has_bracket_in(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name_in_address(name) != name; });
}

}  // namespace shale::tools
