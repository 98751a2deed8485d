#include "shale/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "storage/files/awaited_file.hpp"
#include "storage/files/file_copy.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/files/file_rights.hpp"
#include "storage/files/file_space.hpp"
#include "storage/files/file_system_kind.hpp"
#include "storage/files/opening.hpp"
#include "storage/files/partial_path.hpp"
#include "storage/files/replaceable.hpp"
#include "storage/files/whole_path.hpp"
#include "storage/mapped/mapped_block.hpp"

namespace shale {

namespace {

using detail::file_descriptor;
using detail::open_descriptor;

[[noreturn]] void throw_unopened(const std::string& path, int failure) {
  throw error::from_errno(code_for_errno(failure), "the file could not be opened", failure,
                          {fmt::format("file {}", path)});
}

struct stat regular_file(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw_unopened(path, errno);
  if (S_ISDIR(status.st_mode))
    throw error(errc::invalid_argument, "a directory cannot be mapped",
                {fmt::format("file {}", path)});
  if (!S_ISREG(status.st_mode))
    throw error(errc::invalid_argument, "only regular files can be mapped",
                {fmt::format("file {}", path), "it is a device, a pipe or a socket"});
  return status;
}

// The range of the file that `options` select; it must lie inside the file.
detail::file_extent stretch_of(std::uint64_t present, const map_options& options,
                               const std::string& path) {
  const bool begins_inside = options.offset <= present;
  const std::uint64_t rest = begins_inside ? present - options.offset : 0;
  if (!begins_inside || (options.bytes && *options.bytes > rest))
    throw error(errc::invalid_argument, "the range to map reaches beyond the file",
                {fmt::format("file {}", path),
                 options.bytes ? fmt::format("wanted {} bytes from byte {} on", *options.bytes,
                                             options.offset)
                               : fmt::format("wanted everything from byte {} on", options.offset),
                 fmt::format("the file has {} bytes", present), "create_file makes a longer one"});
  return {options.offset, options.bytes.value_or(static_cast<std::size_t>(rest))};
}

storage map_open_file(file_descriptor file, std::string path, const map_options& options) {
  const auto status = regular_file(file.get(), path);
  const bool copied = detail::must_be_copied(file.get(), options.access, path);
  const auto stretch = stretch_of(static_cast<std::uint64_t>(status.st_size), options, path);
  if (copied) return detail::copy_extents(file.get(), {&stretch, 1}, options.access, path);
  detail::mapping_source source;
  source.descriptor = file.get();
  source.owned = std::move(file);
  source.path = std::move(path);
  source.access = options.access;
  storage mapped = detail::storage_block::handle(
      std::make_shared<detail::mapped_block>(std::move(source), stretch, options.reserve_bytes));
  if (options.populate) mapped.populate({0, mapped.size_bytes()});
  return mapped;
}

// The path of an open file, as far as the kernel knows it.
std::string path_of(int descriptor) {
  const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
  char target[4096];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<std::size_t>(length))
                    : fmt::format("descriptor {}", descriptor);
}

// Throws unless a descriptor with these flags allows mappings of the wanted access.
void require_allowed(int flags, access wanted, const std::string& path) {
  const int mode = flags & O_ACCMODE;
  const char* reason = nullptr;
  if ((flags & O_PATH) != 0) reason = "it was opened with O_PATH, neither for reading nor writing";
  else if (mode == O_WRONLY) reason = "it is open for writing only";
  else if (wanted == access::read_write && mode != O_RDWR) reason = "it is open for reading only";
  if (reason != nullptr)
    throw error(errc::access_denied, "the descriptor does not allow the requested access",
                {fmt::format("file {}", path), reason});
}

// Removes a newly made file unless `keep` is called, but only if its name still leads to it.
// Construct this before the file is made, because the constructor can fail.
class new_file {
 public:
  explicit new_file(std::string path) : path_(std::move(path)) {}
  ~new_file() {
    struct stat named {};
    if (made_ && ::lstat(path_.c_str(), &named) == 0 &&
        (!identity_ || (named.st_dev == identity_->device && named.st_ino == identity_->inode)))
      ::unlink(path_.c_str());
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  const std::string& path() const noexcept { return path_; }
  const std::optional<detail::file_identity>& identity() const noexcept { return identity_; }
  void made(int descriptor) noexcept {
    made_ = true;
    identity_ = detail::file_identity::of(descriptor);
  }
  void keep() noexcept { made_ = false; }

 private:
  std::string path_;
  bool made_ = false;
  std::optional<detail::file_identity> identity_;
};

// Reserves the space of a file that was just created and maps it. `path` is its name, now or once
// it has replaced another file.
storage map_created(file_descriptor file, const std::string& path, std::size_t bytes,
                    const create_file_options& options) {
  const std::uint64_t present = detail::file_bytes(file.get(), path);
  if (present < bytes) detail::extend_file(file.get(), present, bytes, path);
  return map_open_file(
      std::move(file), path,
      {.bytes = bytes, .access = access::read_write, .reserve_bytes = options.reserve_bytes});
}

// Gives a new file, which only its owner can open so far, the rights that everybody else had on the
// old one, as far as `mode` allows them. If these cannot be read or set, the new file stays as it
// is.
void hand_on_permissions(int made, const detail::file_rights& old, unsigned mode) noexcept {
  struct stat status {};
  if (::fstat(made, &status) != 0) return;
  const mode_t shared = mode & (old.status.st_mode & 0077u);
  detail::give_rights(made, status.st_gid, old, (status.st_mode & 0700u) | shared);
}

// Makes a new file that replaces `path`, if there is one. It is complete before it takes the name,
// and other processes keep the bytes of the replaced file.
storage replace_file(const std::string& path, std::size_t bytes,
                     const create_file_options& options) {
  const std::string target = detail::path_after_links(path);
  detail::file_rights before;
  const int failure = ::stat(target.c_str(), &before.status) == 0 ? 0 : errno;
  if (failure == 0 && !S_ISREG(before.status.st_mode))
    throw error(errc::invalid_argument, "only a regular file can be replaced",
                {fmt::format("file {}", path)});
  detail::require_renames(detail::directory_of(target), path);
  if (failure == 0) {
    detail::require_replaceable(target, before.status);
    before.list = detail::access_list::of(AT_FDCWD, target.c_str(), before.status);
  }
  const bool may_replace = failure != ENOENT;
  const unsigned first_mode = may_replace ? options.mode & ~0077u : options.mode;
  for (;;) {
    new_file created(detail::partial_path(target));
    auto file = open_descriptor(created.path(), O_RDWR | O_CREAT | O_EXCL | O_NOCTTY, first_mode);
    if (!file && errno == EEXIST) continue;
    if (!file) throw_unopened(path, errno);
    created.made(file.get());
    if (may_replace) hand_on_permissions(file.get(), before, options.mode);
    storage mapped = map_created(std::move(file), target, bytes, options);
    if (::rename(created.path().c_str(), target.c_str()) != 0)
      throw error::from_errno(detail::code_for_opened_file(errno),
                              "the new file could not take the name", errno,
                              {fmt::format("file {}", path)});
    created.keep();
    detail::awaited_file::appeared(path, created.identity());
    return mapped;
  }
}

}  // namespace

storage map_file(const std::string& path, const map_options& options) {
  return detail::reporting("map file", [&] {
    detail::require_enumerator(options.access, access::copy_on_write, "access");
    detail::require_whole_path(path);
    const int mode = options.access == access::read_write ? O_RDWR : O_RDONLY;
    file_descriptor file(detail::open_past_leases(AT_FDCWD, path, mode | O_NOCTTY));
    if (!file && errno == EISDIR)
      throw error(errc::invalid_argument, "a directory cannot be mapped",
                  {fmt::format("file {}", path)});
    if (!file) throw_unopened(path, errno);
    return map_open_file(std::move(file), path, options);
  });
}

storage map_file(int descriptor, const map_options& options) {
  return detail::reporting("map open file", [&] {
    detail::require_enumerator(options.access, access::copy_on_write, "access");
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0)
      throw error::from_errno(errc::invalid_argument, "not an open descriptor", errno,
                              {fmt::format("descriptor {}", descriptor)});
    const std::string path = path_of(descriptor);
    require_allowed(flags, options.access, path);
    file_descriptor own = detail::duplicate(descriptor);
    if (!own) throw_unopened(path, errno);
    return map_open_file(std::move(own), path, options);
  });
}

mapping_support mapping_support_at(const std::string& path, access wanted) {
  detail::require_enumerator(wanted, access::copy_on_write, "access");
  detail::require_whole_path(path);
  struct statfs status {};
  int result;
  do result = ::statfs(path.c_str(), &status);
  while (result != 0 && errno == EINTR);
  if (result != 0)
    throw error::from_errno(code_for_errno(errno), "the file system could not be queried", errno,
                            {fmt::format("file {}", path)});
  return detail::support_for(
      detail::classify_file_system(static_cast<std::uint64_t>(status.f_type)),
      wanted == access::read_write ? O_RDWR : O_RDONLY, wanted);
}

storage create_file(const std::string& path, std::size_t bytes,
                    const create_file_options& options) {
  return detail::reporting("create file", [&] {
    detail::require_enumerator(options.existing, existing_file::keep, "existing_file");
    detail::require_whole_path(path);
    if (options.existing == existing_file::replace) return replace_file(path, bytes, options);
    std::string target = path;
    for (int attempt = 0;; ++attempt) {
      new_file created(target);
      auto file = open_descriptor(target, O_RDWR | O_CREAT | O_EXCL | O_NOCTTY, options.mode);
      if (file) {
        created.made(file.get());
        detail::awaited_file::appeared(path, created.identity());
        storage mapped = map_created(std::move(file), path, bytes, options);
        created.keep();
        return mapped;
      }
      if (options.existing == existing_file::refuse || errno != EEXIST) throw_unopened(path, errno);
      file = file_descriptor(detail::open_past_leases(AT_FDCWD, target, O_RDWR | O_NOCTTY));
      if (file) {
        regular_file(file.get(), path);
        detail::awaited_file::appeared(path, file.get());
        return map_created(std::move(file), path, bytes, options);
      }
      // The name is a link to a file that does not exist yet, or the file was removed after EEXIST:
      // begin again.
      if (errno != ENOENT || attempt == 100) throw_unopened(path, errno);
      target = detail::path_after_links(path);
    }
  });
}

}  // namespace shale
