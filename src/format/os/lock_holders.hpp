// Finds the processes that hold a lock, for messages. The kernel names the process of a POSIX lock,
// but not that of a lock of an open file description, because several processes may share it. Those
// are found by their descriptors.
#pragma once

#include <string>

#include "format/os/file_system.hpp"

namespace shale::format {

/// Returns text like "process 4711 (backup)", with commas between several processes, and with
/// control characters of their names as \xNN. Returns "" if the holders are unknown: /proc is
/// missing, or it hides other users' descriptors.
/// Cost     reads one file for each descriptor of every process that this user may inspect
std::string lock_holders(int descriptor, const found_lock& lock);

}  // namespace shale::format
