// Files that killed writers left beside what they were writing.
//
// Shale writes under a name that begins or ends with the target's, and moves the file when it is
// whole. Where the writer was killed, that name stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shale::tools {

/// What the name of such a file says.
struct leftover_name {
  std::string target;                    ///< the name of what was to be written
  std::optional<std::uint64_t> process;  ///< who wrote it
  bool is_container = false;             ///< so that its first bytes tell whether it is Shale's
};

/// Nothing for the names of other files.
std::optional<leftover_name> parse_leftover(std::string_view file_name);

enum class leftover_state {
  abandoned,  ///< the writer is gone and no process on this machine has the file open
  written,    ///< somebody writes it
  unclear,    ///< the system does not say
};

struct leftover {
  std::string path;
  leftover_name name;
  std::uint64_t bytes = 0;  ///< of disk
  leftover_state state = leftover_state::unclear;
  std::string why;  ///< how the state is known
};

/// Those in `folder`; with a `target`, those that were to become it. Sorted by path.
/// Cost     reads the folder, and opens what has such a name
/// Throws   access_denied, io
std::vector<leftover> find_leftovers(const std::string& folder, std::string_view target = {});

/// Removes what is abandoned, having looked once more. Returns what went.
std::vector<leftover> remove_leftovers(const std::vector<leftover>& found);

}  // namespace shale::tools
