#include "storage/system/file_facts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "storage/system/not_offered.hpp"

namespace shale::detail {
namespace {

// An empty path stands for `folder` itself, which may be any open file.
int facts_at(int folder, const char* path, int flags, file_facts& found) noexcept {
  struct statx about {};
  if (::statx(folder, path, flags, STATX_TYPE | STATX_MODE | STATX_INO | STATX_SIZE, &about) == 0) {
    found = {::makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino, about.stx_size,
             about.stx_mode};
    return 0;
  }
  if (!is_not_offered(errno)) return errno;
  struct stat status {};
  if (::fstatat(folder, path, &status, flags) != 0) return errno;
  found = {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino),
           static_cast<std::uint64_t>(status.st_size), status.st_mode};
  return 0;
}

}  // namespace

int facts_of(int descriptor, file_facts& found) noexcept {
  return facts_at(descriptor, "", AT_EMPTY_PATH, found);
}

int facts_of(int folder, const char* path, file_facts& found) noexcept {
  return facts_at(folder, path, 0, found);
}

}  // namespace shale::detail
