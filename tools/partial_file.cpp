#include "partial_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <random>
#include <system_error>
#include <vector>

#include "shale/error.hpp"
#include "shale/foreign_file.hpp"

namespace shale::tools {

namespace {

std::mutex registry_mutex;
std::vector<std::string>& registry() {
  static std::vector<std::string> paths;
  return paths;
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// Where a symbolic link leads, so that the link stays and its file is what gets replaced; that file
// need not be there yet.
std::string behind_links(std::string path) {
  constexpr int most_links = 40;  // as many as the kernel follows
  for (int followed = 0; followed <= most_links; ++followed) {
    std::error_code is_no_link;
    const std::filesystem::path to = std::filesystem::read_symlink(path, is_no_link);
    if (is_no_link) return path;
    path = std::filesystem::path(path).parent_path() / to;
  }
  throw error::from_errno(errc::io, "too many symbolic links", ELOOP, {"file " + path});
}

// Keeps writers apart that share a directory but no process table.
std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

[[noreturn]] void throw_exists(const std::string& target) {
  throw error(errc::already_exists, fmt::format("'{}' exists", target), {"-f replaces it"});
}

// Said before the work rather than after it, and of the names that were given.
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

void sync_path(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC);
  if (file < 0)
    throw error::from_errno(code_for_errno(errno), "open to sync", errno, {"file " + path});
  const int failure = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  if (failure != 0) throw error::from_errno(errc::io, "sync", failure, {"file " + path});
}

}  // namespace

partial_file::partial_file(std::string target, replacing policy)
    : target_(std::move(target)), policy_(policy) {
  const std::string named = target_;
  target_ = behind_links(target_);
  if (policy_ == replacing::refuse && file_exists(target_)) throw_exists(named);
  struct stat status {};
  if (::stat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw error(errc::invalid_argument, "only regular files can be replaced", {"file " + target_});
  const std::string directory = directory_of(target_);
  require_writable(directory, named);
  constexpr std::size_t longest_kept = 200;  // of the 255 bytes that file systems allow
  path_ = fmt::format("{}/.{}.{:016x}.partial", directory, name_of(target_).substr(0, longest_kept),
                      random_number());
  const std::lock_guard lock(registry_mutex);
  registry().push_back(path_);
}

partial_file::~partial_file() {
  if (path_.empty()) return;
  ::unlink(path_.c_str());
  const std::lock_guard lock(registry_mutex);
  std::erase(registry(), path_);
}

void partial_file::publish() {
  struct stat replaced {};
  if (policy_ == replacing::allow && ::stat(target_.c_str(), &replaced) == 0)
    ::chmod(path_.c_str(), replaced.st_mode & 07777);  // not ours to change: then ours stay
  sync_path(path_, O_RDONLY);
  const unsigned flags = policy_ == replacing::refuse ? RENAME_NOREPLACE : 0;
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), flags) != 0) {
    if (errno == EEXIST) throw_exists(target_);
    // File systems that do not know the flag: link, which never replaces either.
    if (errno != EINVAL || flags == 0 || ::link(path_.c_str(), target_.c_str()) != 0) {
      if (errno == EEXIST) throw_exists(target_);
      throw error::from_errno(code_for_errno(errno), "give the finished file its name", errno,
                              {"file " + target_});
    }
    ::unlink(path_.c_str());
  }
  {
    const std::lock_guard lock(registry_mutex);
    std::erase(registry(), path_);
  }
  path_.clear();
  sync_path(directory_of(target_), O_RDONLY | O_DIRECTORY);
}

std::unique_lock<std::mutex> partial_file::creation() { return std::unique_lock(registry_mutex); }

void exit_without_partial_files(int code) noexcept {
  const std::lock_guard lock(registry_mutex);  // for good
  for (const std::string& path : registry()) ::unlink(path.c_str());
  exit_without_unfinished_files(code);
}

bool file_exists(const std::string& path) noexcept {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

unsigned long long file_bytes(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw error::from_errno(code_for_errno(errno), "cannot open file", errno, {"file " + path});
  return static_cast<unsigned long long>(status.st_size);
}

}  // namespace shale::tools
