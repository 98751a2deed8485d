#include "storage/files/file_rights.hpp"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "storage/files/file_descriptor.hpp"
#include "storage/files/opening.hpp"

namespace shale::detail {

namespace {

constexpr const char* list_name = "system.posix_acl_access";

// Calls fgetxattr(2). A file that was opened with O_PATH is asked through /proc.
ssize_t read_list(int descriptor, void* into, std::size_t bytes) noexcept {
  const ssize_t size = ::fgetxattr(descriptor, list_name, into, bytes);
  if (size >= 0 || errno != EBADF) return size;
  char self[64];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor);
  return ::getxattr(self, list_name, into, bytes);
}

// Whether read_list failed because the file has no list, or because the file system has no lists at
// all.
bool says_absent(int error_number) noexcept {
  return error_number == ENODATA || error_number == EOPNOTSUPP;
}

}  // namespace

access_list access_list::of(int descriptor) {
  access_list result;
  const ssize_t size = read_list(descriptor, nullptr, 0);
  if (size <= 0) {
    result.is_known_ = size == 0 || says_absent(errno);
    return result;
  }
  result.bytes_.resize(static_cast<std::size_t>(size));
  // If the list changes between the two calls, it is unknown.
  result.is_known_ = read_list(descriptor, result.bytes_.data(), result.bytes_.size()) == size;
  return result;
}

access_list access_list::of(int folder, const char* name, const struct stat& about) {
  // The file is opened with O_PATH if possible: closing such a descriptor does not release the
  // locks that this process has on the file (fcntl(2)). But its list can be read only through
  // /proc.
  const bool has_proc = ::access("/proc/self/fd", X_OK) == 0;
  const file_descriptor opened(
      open_past_leases(folder, name, (has_proc ? O_PATH : O_RDONLY | O_NOCTTY) | O_NOFOLLOW));
  struct stat found {};
  if (!opened || ::fstat(opened.get(), &found) != 0) return {};
  if (found.st_dev != about.st_dev || found.st_ino != about.st_ino) return {};
  return of(opened.get());
}

bool access_list::give_to(int descriptor) const noexcept {
  if (!is_known_) return false;
  if (!bytes_.empty())
    return ::fsetxattr(descriptor, list_name, bytes_.data(), bytes_.size(), 0) == 0;
  // A new file gets a list from its folder if the folder has one for new files.
  if (read_list(descriptor, nullptr, 0) < 0 && says_absent(errno)) return true;
  return ::fremovexattr(descriptor, list_name) == 0;
}

void give_rights(int made, gid_t group, const file_rights& replaced, mode_t permissions) noexcept {
  // Set-user-ID and set-group-ID bits are not handed on: they were meant for other bytes, and
  // perhaps for another owner.
  permissions &= 0777;
  const bool same_group = group == replaced.status.st_gid;
  if (!same_group) {
    // A member of one file's group may belong to `others` of the other file. So both get only bits
    // that both had.
    const mode_t both = (permissions >> 3) & permissions & 07;
    permissions = (permissions & 0700) | (both << 3) | both;
  }
  const bool list_applies = same_group || replaced.list.is_absent();
  // Without its list, the file would also admit users to whom the list allows less than to
  // `others`. If the file keeps a list from its folder, that list allows nothing, because the group
  // bits are zero.
  if (!list_applies || !replaced.list.give_to(made)) permissions &= 0700;
  (void)::fchmod(made, permissions);
}

}  // namespace shale::detail
