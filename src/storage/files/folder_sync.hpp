// Makes the names in a folder durable.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace shale::detail {

/// Calls fsync for an open folder, and finds failures that the system does not report there.
///
/// XFS shuts itself down when it cannot write its log. Names that are not in the log are lost then.
/// From that moment on, fsync of a folder does nothing and answers success, while each request for
/// attributes fails with EIO. A shutdown lasts until the file system is mounted again. So a request
/// after the sync finds every shutdown that began before the sync or during it.
/// Returns  0, or the error number; a sync that failed must not be repeated
/// Cost     the sync, and one call that reads nothing from the device
inline int sync_folder(int folder) noexcept {
  if (::fsync(folder) != 0) return errno;
  struct stat about {};
  return ::fstat(folder, &about) == 0 ? 0 : errno;
}

}  // namespace shale::detail
