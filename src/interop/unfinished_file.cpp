#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "shale/error.hpp"
#include "shale/foreign_file.hpp"
#include "storage/file_descriptor.hpp"
#include "storage/partial_path.hpp"

namespace shale {

namespace {

// The paths of all unfinished files, for a process that ends without their destructors.
struct unfinished_list {
  std::recursive_mutex mutex;  // what makes a file may use another writer
  std::vector<std::string> paths;
};
unfinished_list& unfinished() {
  static unfinished_list all;
  return all;
}

void forget_unfinished(const std::string& path) {
  unfinished_list& all = unfinished();
  const std::lock_guard lock(all.mutex);
  std::erase(all.paths, path);
}

[[noreturn]] void throw_exists(const std::string& target) {
  throw error(errc::already_exists, "the file exists",
              {"file " + target, "existing_file::replace would replace it"});
}

// Before anything is created under a name that nobody gave.
void require_writable(const std::string& directory, const std::string& target) {
  struct stat status {};
  int failure = ::stat(directory.c_str(), &status) == 0 ? 0 : errno;
  if (failure == 0 && !S_ISDIR(status.st_mode)) failure = ENOTDIR;
  if (failure == 0 && ::access(directory.c_str(), W_OK | X_OK) != 0) failure = errno;
  if (failure == 0) return;
  error refused = error::from_errno(code_for_errno(failure), "cannot create file", failure,
                                    {"file " + target, "directory " + directory});
  if (failure == ENOENT)
    refused.add_detail(fmt::format("make the folder first: mkdir -p {}", directory));
  throw refused;
}

void sync(const std::string& path, int flags, const std::string& what) {
  const detail::file_descriptor opened = detail::open_descriptor(path, flags);
  if (!opened) throw error::from_errno(code_for_errno(errno), "cannot open to sync", errno, {what});
  if (::fsync(opened.get()) != 0)
    throw error::from_errno(errc::io, "cannot make durable (fsync)", errno, {what});
}

}  // namespace

unfinished_file::unfinished_file(const std::string& target, existing_file existing)
    : target_(detail::behind_links(target)), existing_(existing) {
  struct stat status {};
  if (::stat(target_.c_str(), &status) == 0) {
    if (existing_ == existing_file::refuse) throw_exists(target_);
    if (!S_ISREG(status.st_mode))
      throw error(errc::invalid_argument, "only regular files can be replaced",
                  {"file " + target_});
  }
  if (target_.empty() || target_.back() == '/')
    throw error(errc::invalid_argument, "not the name of a file", {"got '" + target + "'"});
  require_writable(detail::directory_of(target_), target);
  path_ = detail::partial_path(target_);
  unfinished_list& all = unfinished();
  const std::lock_guard lock(all.mutex);
  all.paths.push_back(path_);
}

unfinished_file::creation::creation() { unfinished().mutex.lock(); }

unfinished_file::creation::~creation() { unfinished().mutex.unlock(); }

unfinished_file::~unfinished_file() {
  if (path_.empty()) return;
  ::unlink(path_.c_str());
  forget_unfinished(path_);
}

unfinished_file::unfinished_file(unfinished_file&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::exchange(other.path_, {})),
      existing_(other.existing_) {}

unfinished_file& unfinished_file::operator=(unfinished_file&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(path_, other.path_);
  std::swap(existing_, other.existing_);
  return *this;
}

void unfinished_file::publish() {
  sync(path_, O_RDONLY, "file " + target_);
  publish_durable();
}

void unfinished_file::publish_durable() {
  struct stat status {};
  if (existing_ == existing_file::replace && ::stat(target_.c_str(), &status) == 0)
    ::chmod(path_.c_str(), status.st_mode & 07777);  // not ours to change: then ours stay
  const unsigned flags = existing_ == existing_file::refuse ? RENAME_NOREPLACE : 0;
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), flags) != 0) {
    if (errno == EEXIST) throw_exists(target_);
    // File systems that do not know the flag: a hard link never replaces either.
    if (errno != EINVAL || flags == 0 || ::link(path_.c_str(), target_.c_str()) != 0) {
      if (errno == EEXIST) throw_exists(target_);
      throw error::from_errno(code_for_errno(errno), "cannot give the finished file its name",
                              errno, {"file " + target_});
    }
    ::unlink(path_.c_str());
  }
  forget_unfinished(path_);
  path_.clear();
  const std::string directory = detail::directory_of(target_);
  sync(directory, O_RDONLY | O_DIRECTORY, "directory " + directory);
}

void exit_without_unfinished_files(int status) noexcept {
  unfinished_list& all = unfinished();
  const std::lock_guard lock(all.mutex);  // for good
  for (const std::string& path : all.paths) ::unlink(path.c_str());
  ::_exit(status);
}

}  // namespace shale
