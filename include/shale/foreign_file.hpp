// What the writers of foreign formats have in common. Every one of them writes beside the target
// under a name of its own, makes that durable and then renames it: whoever looks at the target sees
// what was there before, or all that was written, also after a crash.
#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] shale {

/// What happens to a file that already has the name.
enum class existing_file : std::uint8_t {
  replace,  ///< it gives way once the new file is whole; mappings of it keep their bytes
  refuse,   ///< already_exists, before and after the work
};

/// Ends the process at once, as at a second Ctrl-C: no destructor runs and no stream is flushed, but
/// what the writers of this process have not finished is removed, and none of them makes a new file
/// before the end.
/// Threads  any, but no signal handler: it takes a lock
[[noreturn]] void exit_without_unfinished_files(int status) noexcept;

}  // namespace shale
