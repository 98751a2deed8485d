// Describes a child of a level. Names of arrays are paths: `/` separates levels, like folders of
// files.
#pragma once

#include <string>

namespace [[gnu::visibility("default")]] shale {

/// A child of a level of names.
struct level_entry {
  std::string name;       ///< of an array, its name; of a level, its path with a '/' at the end
  bool is_level = false;  ///< a '/' at the end of `name` does not tell: arrays that other programs
                          ///< wrote may have one, too

  bool operator==(const level_entry&) const = default;
};

}  // namespace shale
