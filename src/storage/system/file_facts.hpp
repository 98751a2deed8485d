// Asks the system what a file is, but not for its times.
//
// Since Linux 6.13, a file whose times somebody has asked for gets a time of its own at its next
// change. Changes that nobody looks at share the time of a tick of the clock. A new time changes the
// file's entry in the file system, and the next sync of its data has to write that, too: a loop of
// one write and one sync took 0.30 ms a round instead of 0.20. So whatever a commit calls asks here,
// except when the file grows: then its entry is written in any case.
#pragma once

#include <cstdint>

namespace shale::detail {

struct file_facts {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::uint32_t mode = 0;  ///< as st_mode: the kind of file, and the permissions
};

/// Asks about an open file.
/// Returns  0, or the error number
int facts_of(int descriptor, file_facts& found) noexcept;

/// The same for the file that a path leads to. A relative path begins in the directory `folder`.
int facts_of(int folder, const char* path, file_facts& found) noexcept;

}  // namespace shale::detail
