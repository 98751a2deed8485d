// What the files and folders of posix_files share: the results of system calls as file_system.hpp
// has them, and folders that are held open.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "format/os/file_system.hpp"
#include "storage/system/file_facts.hpp"

namespace shale::format {

inline os_result answer(std::int64_t result) noexcept { return result < 0 ? -errno : result; }

inline file_identity identity_from(const shale::detail::file_facts& facts) noexcept {
  return {facts.device, facts.inode};
}

inline timespec to_timespec(std::chrono::milliseconds duration) noexcept {
  const auto count = std::max<std::int64_t>(duration.count(), 0);
  timespec time{};
  time.tv_sec = static_cast<time_t>(count / 1000);
  time.tv_nsec = static_cast<long>(count % 1000 * 1'000'000);
  return time;
}

/// The directory that relative names begin in: the working directory, or one that is held open.
struct starting_directory {
  int descriptor = AT_FDCWD;

  starting_directory() = default;
  ~starting_directory() {
    if (descriptor >= 0) ::close(descriptor);
  }
  starting_directory(const starting_directory&) = delete;
  starting_directory& operator=(const starting_directory&) = delete;
};

}  // namespace shale::format
