#include "interop/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <mutex>
#include <utility>

#include "shale/error.hpp"
#include "storage/file_size_signal.hpp"
#include "storage/partial_path.hpp"

namespace shale::interop {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 18;

// The paths of all pending files, for a process that ends without their destructors.
struct unfinished_files {
  std::mutex mutex;
  std::vector<std::string> paths;
};
unfinished_files& unfinished() {
  static unfinished_files all;
  return all;
}

void forget_unfinished(const std::string& path) {
  unfinished_files& all = unfinished();
  const std::lock_guard lock(all.mutex);
  std::erase(all.paths, path);
}

[[noreturn]] void throw_exists(const std::string& target) {
  throw error(errc::already_exists, "the file exists",
              {"file " + target, "existing_file::replace would replace it"});
}

[[noreturn]] void throw_unsynced(int failure, const std::string& what) {
  throw error::from_errno(errc::io, "cannot make durable (fsync)", failure, {what});
}

// Before anything is created under a name that nobody gave.
void require_writable(const std::string& directory, const std::string& target) {
  struct stat status {};
  int failure = ::stat(directory.c_str(), &status) == 0 ? 0 : errno;
  if (failure == 0 && !S_ISDIR(status.st_mode)) failure = ENOTDIR;
  if (failure == 0 && ::access(directory.c_str(), W_OK | X_OK) != 0) failure = errno;
  if (failure != 0)
    throw error::from_errno(code_for_errno(failure), "cannot create file", failure,
                            {"file " + target, "directory " + directory});
}

void sync_directory(const std::string& path) {
  const detail::file_descriptor directory = detail::open_descriptor(path, O_RDONLY | O_DIRECTORY);
  if (!directory)
    throw error::from_errno(code_for_errno(errno), "cannot open to sync", errno,
                            {"directory " + path});
  if (::fsync(directory.get()) != 0) throw_unsynced(errno, "directory " + path);
}

}  // namespace

pending_file::pending_file(const std::string& target, existing_file existing)
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
  unfinished_files& all = unfinished();
  const std::lock_guard lock(all.mutex);
  all.paths.push_back(path_);
}

std::unique_lock<std::mutex> pending_file::creation() {
  return std::unique_lock(unfinished().mutex);
}

pending_file::~pending_file() {
  if (path_.empty()) return;
  ::unlink(path_.c_str());
  forget_unfinished(path_);
}

pending_file::pending_file(pending_file&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::exchange(other.path_, {})),
      existing_(other.existing_) {}

pending_file& pending_file::operator=(pending_file&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(path_, other.path_);
  std::swap(existing_, other.existing_);
  return *this;
}

void pending_file::publish() {
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
  sync_directory(detail::directory_of(target_));
}

output_file::output_file(const std::string& target, existing_file existing)
    : pending_(target, existing) {
  buffer_.reserve(buffer_bytes);
  const auto creating = pending_file::creation();
  descriptor_ = detail::open_descriptor(pending_.path(), O_RDWR | O_CREAT | O_EXCL, 0666);
  if (!descriptor_)
    throw error::from_errno(code_for_errno(errno), "cannot create file", errno,
                            {"file " + pending_.target()});
}

void output_file::append(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() >= buffer_bytes) write_at(bytes, position_);
  else buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  position_ += bytes.size();
}

void output_file::append(std::string_view bytes) {
  append(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())));
}

void output_file::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  assert(offset <= position_ && bytes.size() <= position_ - offset);
  flush();
  write_at(bytes, offset);
}

void output_file::publish() {
  flush();
  // Through the descriptor that wrote: one that is opened later may not hear of what failed before.
  if (::fsync(descriptor_.get()) != 0) throw_unsynced(errno, "file " + pending_.target());
  // Errors of delayed writes show at close on some network file systems.
  const int failure = ::close(descriptor_.release()) == 0 ? 0 : errno;
  if (failure != 0 && failure != EINTR)
    throw error::from_errno(code_for_errno(failure), "cannot close file", failure,
                            {"file " + pending_.target()});
  pending_.publish();
}

void output_file::flush() {
  write_at(buffer_, position_ - buffer_.size());
  buffer_.clear();
}

void output_file::write_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  const detail::no_file_size_signal guard;
  std::size_t done = 0;
  while (done < bytes.size()) {
    constexpr std::size_t most_bytes = std::size_t{1} << 30;
    const ssize_t put =
        ::pwrite(descriptor_.get(), bytes.data() + done, std::min(bytes.size() - done, most_bytes),
                 static_cast<off_t>(offset + done));
    if (put < 0) {
      if (errno == EINTR) continue;
      throw error::from_errno(code_for_errno(errno), "cannot write file", errno,
                              {fmt::format("file {}, byte {}", pending_.target(), offset + done)});
    }
    done += static_cast<std::size_t>(put);
  }
}

}  // namespace shale::interop

namespace shale {

void exit_without_unfinished_files(int status) noexcept {
  interop::unfinished_files& all = interop::unfinished();
  const std::lock_guard lock(all.mutex);  // for good
  for (const std::string& path : all.paths) ::unlink(path.c_str());
  ::_exit(status);
}

}  // namespace shale
