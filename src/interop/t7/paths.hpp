// Gives the arrays of a tree their paths.
//
// Invariants
//   torch.4  each table is entered once, and the total length of the paths is at most that of the
//            file plus 1 MiB; so time and memory stay in proportion to the file, even with cycles
//            and shared tables
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "interop/t7/tree.hpp"

namespace shale::interop::t7 {

struct array_paths {
  std::vector<std::string> names;  ///< in the order of the tree, each once

  /// The object of each path; `none` if several objects have the path. The views are into `names`.
  std::map<std::string_view, std::size_t> objects;
  t7_other_values others;
};

/// Throws   unsupported (longer paths than torch.4 allows)
array_paths find_paths(const tree& of, std::uint64_t file_bytes);

}  // namespace shale::interop::t7
