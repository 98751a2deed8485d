// Names of arrays as paths: `/` separates levels, as folders of files.
#pragma once

#include <string>

namespace [[gnu::visibility("default")]] shale {

/// A child of a level of names.
struct level_entry {
  std::string name;       ///< of an array, its name; of a level, its path with a '/' at the end
  bool is_level = false;  ///< names can end with '/' only in files of other programs

  bool operator==(const level_entry&) const = default;
};

}  // namespace shale
