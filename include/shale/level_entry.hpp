// Describes a child of a level. Names of arrays are paths: `/` separates levels, like folders of
// files.
#pragma once

#include <string>

namespace [[gnu::visibility("default")]] shale {

/// A child of a level of names.
struct level_entry {
  std::string name;       ///< of an array, its name; of a level, its path with a '/' at the end
  bool is_level = false;  ///< only files of other programs have arrays whose names end with '/'

  bool operator==(const level_entry&) const = default;
};

}  // namespace shale
