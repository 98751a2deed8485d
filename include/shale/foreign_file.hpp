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

/// Removes what the writers of this process have not finished, so that a program that ends without
/// its destructors, at a second Ctrl-C, leaves nothing behind. Writers that go on all the same fail
/// when they give the file its name: end the process next.
/// Threads  any, but no signal handler: it takes a lock
void remove_unfinished_files() noexcept;

}  // namespace shale
