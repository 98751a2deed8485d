// Finds and removes files that killed writers left beside their targets.
//
// Shale writes a file under a temporary name, which contains the target's name, and renames the
// file when it is complete. If the writer is killed, the file with the temporary name remains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shale::tools {

/// The parts of a temporary name.
struct leftover_name {
  std::string target;         ///< the name of the target
  bool is_container = false;  ///< whether its first bytes show that Shale wrote it

  /// Whether the target is one that Shale writes: its first bytes or its suffix show that, or the
  /// user names it. Other programs may use names of the same form.
  bool is_ours = false;
};

/// Parses a temporary name, which holds 16 random hexadecimal digits; nothing for the name of
/// another file.
std::optional<leftover_name> parse_leftover(std::string_view file_name);

enum class leftover_state {
  abandoned,  ///< the writer is gone and no process on this machine has the file open
  written,    ///< a process is writing the file
  unclear,    ///< the system, or the name, does not tell
};

struct leftover {
  std::string path;
  leftover_name name;
  std::uint64_t bytes = 0;  ///< on the disk
  leftover_state state = leftover_state::unclear;
  std::string why;  ///< the reason for the state
};

/// The leftovers in `folder`, sorted by path; with a `target`, only the leftovers of that target,
/// whatever its suffix is.
/// Cost     reads the folder, and opens each file with a temporary name
/// Throws   access_denied, io
std::vector<leftover> find_leftovers(const std::string& folder, std::string_view target = {});

/// Examines the abandoned files again and removes them. Returns the files that were removed.
std::vector<leftover> remove_leftovers(const std::vector<leftover>& found);

}  // namespace shale::tools
