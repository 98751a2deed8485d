#include "storage/files/replaceable.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>

#include "shale/error.hpp"
#include "storage/files/partial_path.hpp"

namespace shale::detail {

namespace {

// The attributes that statx(2) tells of a file or a folder; none if it fails.
std::uint64_t attributes_of(const std::string& path) noexcept {
  struct statx about {};
  return ::statx(AT_FDCWD, path.c_str(), 0, 0, &about) == 0 ? about.stx_attributes : 0;
}

[[noreturn]] void throw_kept(const std::string& path, const std::string& why,
                             const std::string& advice) {
  throw error(errc::access_denied, "the file cannot be replaced",
              {"file " + path, why, advice + ", or write to another name"});
}

}  // namespace

bool is_kept_by_sticky_folder(const struct stat& folder, const struct stat& file,
                              uid_t user) noexcept {
  const bool is_sticky = (folder.st_mode & S_ISVTX) != 0;
  return is_sticky && user != 0 && user != file.st_uid && user != folder.st_uid;
}

void require_replaceable(const std::string& path, const struct stat& about) {
  const std::uint64_t attributes = attributes_of(path);
  if ((attributes & STATX_ATTR_MOUNT_ROOT) != 0)
    throw error(errc::invalid_argument, "a mount point cannot be replaced",
                {"file " + path, "mount its folder instead of the file, or write to another name"});
  if ((attributes & STATX_ATTR_IMMUTABLE) != 0)
    throw_kept(path, "it is immutable",
               fmt::format("`chattr -i {}` makes it an ordinary file", path));
  if ((attributes & STATX_ATTR_APPEND) != 0)
    throw_kept(path, "it is append-only",
               fmt::format("`chattr -a {}` makes it an ordinary file", path));
  struct stat folder {};
  if (::stat(directory_of(path).c_str(), &folder) == 0 &&
      is_kept_by_sticky_folder(folder, about, ::geteuid()))
    throw_kept(path,
               fmt::format("user {} owns it, and its folder is sticky: only owners may replace "
                           "files there",
                           about.st_uid),
               "ask that user to remove it");
}

void require_renames(const std::string& folder, const std::string& target) {
  if ((attributes_of(folder) & STATX_ATTR_APPEND) == 0) return;
  throw error(
      errc::access_denied, "a file cannot get its name when it is complete",
      {"file " + target,
       fmt::format("directory {} is append-only: its files cannot be renamed", folder),
       fmt::format("`chattr -a {}` makes it an ordinary folder, or write elsewhere", folder)});
}

}  // namespace shale::detail
