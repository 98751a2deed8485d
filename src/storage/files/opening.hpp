// Opens existing files. It never waits for the other end of a pipe, and waits for another process's
// lease.
#pragma once

#include <string>

namespace shale::detail {

/// Calls openat(2) with O_CLOEXEC, and again if a signal interrupts it. If the path is a pipe, it
/// does not wait for the other end. Another process may hold a lease on a regular file (as nfsd and
/// Samba do for files that they export). Then it waits until the holder gives the lease back, or
/// until the system takes it away (/proc/sys/fs/lease-break-time, 45 s unless the administrator
/// changed it).
/// Returns  a descriptor that the caller closes; -1 if it failed, with the reason in errno
int open_past_leases(int directory, const std::string& path, int flags) noexcept;

}  // namespace shale::detail
