#include "storage/shared_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>

#include "shale/error.hpp"
#include "shale/index.hpp"
#include "storage/file_space.hpp"

namespace shale::detail {

namespace {

constexpr std::size_t name_bytes_max = 200;

struct segment_header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t lifetime;
};
constexpr char segment_magic[8] = {'S', 'H', 'A', 'L', 'E', 's', 'h', 'm'};
constexpr std::uint32_t segment_version = 1;

// Bytes that only locks use, far behind any data.
enum class lock_byte : off_t {
  gate = off_t{1} << 62,          // segment.3
  user = (off_t{1} << 62) + 1,    // shared by every process that is attached
  creator = (off_t{1} << 62) + 2  // held by the creator
};

// Locks are held for a few system calls; whoever holds one longer has been stopped.
constexpr std::chrono::milliseconds patience{2000};

constexpr std::chrono::microseconds pause_between_attempts{200};

struct flock range_of(lock_byte which, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(which);
  lock.l_len = 1;
  return lock;
}

bool try_lock(int descriptor, lock_byte which, short type) noexcept {
  struct flock lock = range_of(which, type);
  int result;
  do result = ::fcntl(descriptor, F_OFD_SETLK, &lock);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

// False if the lock was not free in time, or cannot be had (errno says which).
bool lock_in_time(int descriptor, lock_byte which, short type) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!try_lock(descriptor, which, type)) {
    if ((errno != EAGAIN && errno != EACCES) || std::chrono::steady_clock::now() > deadline)
      return false;
    std::this_thread::sleep_for(pause_between_attempts);
  }
  return true;
}

void lock(int descriptor, lock_byte which, short type, const std::string& path) {
  if (lock_in_time(descriptor, which, type)) return;
  const bool waited = errno == EAGAIN || errno == EACCES;
  throw error::from_errno(waited ? errc::busy : errc::io, "the segment could not be locked", errno,
                          {fmt::format("file {}", path),
                           waited ? "another process keeps attaching or removing it"
                                  : "/dev/shm must be a file system with locks, such as tmpfs"});
}

void unlock(int descriptor, lock_byte which) noexcept { try_lock(descriptor, which, F_UNLCK); }

// Whether another description holds the byte.
bool held_by_others(int descriptor, lock_byte which) noexcept {
  struct flock lock = range_of(which, F_WRLCK);
  // Without an answer, assume life: a name too many does less harm than one too few.
  return ::fcntl(descriptor, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool is_dead(int descriptor, shared_lifetime lifetime) noexcept {
  switch (lifetime) {
    case shared_lifetime::creator:
      return !held_by_others(descriptor, lock_byte::creator);
    case shared_lifetime::counted:
      return !held_by_others(descriptor, lock_byte::user);
    case shared_lifetime::manual:
      break;
  }
  return false;
}

bool leads_to(const std::string& path, int descriptor) noexcept {
  struct stat named {};
  struct stat opened {};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

file_descriptor open_name(const std::string& path, int flags) {
  return open_descriptor(path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

// Failures to open that say nothing about the file.
bool is_shortage(int failure) noexcept {
  return failure == EMFILE || failure == ENFILE || failure == ENOMEM;
}

// Another description of the same file, whatever its name leads to by now.
file_descriptor reopen(const file_descriptor& file, int flags, const std::string& path) {
  const std::string link = fmt::format("/proc/self/fd/{}", file.get());
  file_descriptor again = open_descriptor(link, flags | O_NONBLOCK);
  if (!again)
    throw error::from_errno(errc::io, "the segment could not be opened a second time", errno,
                            {fmt::format("file {}", path), "this needs /proc"});
  return again;
}

[[noreturn]] void throw_unopened(const std::string& path, int failure) {
  // A symbolic link, a directory, a socket: not what we put there.
  const bool foreign = failure == ELOOP || failure == EISDIR || failure == ENXIO;
  const errc code = foreign ? errc::corrupt : code_for_errno(failure);
  throw error::from_errno(code, "the segment could not be opened", failure,
                          {fmt::format("file {}", path)});
}

// The header's say, or nothing if this is no segment of ours.
std::optional<shared_lifetime> read_header(int descriptor) noexcept {
  struct stat about {};
  segment_header header{};
  if (::fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) ||
      about.st_size < static_cast<off_t>(segment_header_bytes) ||
      ::pread(descriptor, &header, sizeof header, 0) != sizeof header ||
      std::memcmp(header.magic, segment_magic, sizeof segment_magic) != 0 ||
      header.version != segment_version ||
      header.lifetime > static_cast<std::uint32_t>(shared_lifetime::manual))
    return std::nullopt;
  return static_cast<shared_lifetime>(header.lifetime);
}

shared_lifetime checked_header(int descriptor, const std::string& path) {
  const auto lifetime = read_header(descriptor);
  if (!lifetime)
    throw error(errc::corrupt, "not a segment of ours",
                {fmt::format("file {}", path),
                 "somebody else made it, or it is of a later version; map_file shows raw bytes"});
  return *lifetime;
}

// Nothing, if somebody has cut it into its header since that was read.
std::size_t data_bytes(int descriptor, const std::string& path) {
  const auto all = static_cast<std::size_t>(file_bytes(descriptor, path));
  return all - std::min(all, segment_header_bytes);
}

}  // namespace

std::string segment_path(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (name.empty() || name.size() > name_bytes_max ||
      !std::all_of(name.begin(), name.end(), allowed))
    throw error(errc::invalid_argument, "not a name for a shared segment",
                {fmt::format("got \"{}\"", name),
                 fmt::format("wanted 1 to {} letters, digits, '.', '_' or '-'", name_bytes_max)});
  return fmt::format("{}/{}{}", segment_directory, segment_prefix, name);
}

open_segment make_segment(const std::string& path, std::size_t bytes,
                          const shared_options& options) {
  // Locks that remove or reclaim need a description that may read and write.
  constexpr unsigned owner_bits = 0600;
  if ((options.mode & owner_bits) != owner_bits)
    throw error(errc::invalid_argument, "the owner of a segment must be able to read and write it",
                {fmt::format("file {}", path), fmt::format("got mode {:04o}", options.mode)});
  const auto total = checked_add(bytes, segment_header_bytes);
  if (!total)
    throw error(errc::out_of_space, "the segment's size overflows",
                {fmt::format("file {}", path), fmt::format("wanted {} bytes", bytes)});
  open_segment made;
  made.lifetime = options.lifetime;
  made.bytes = bytes;
  made.pages = open_descriptor(segment_directory, O_TMPFILE | O_RDWR, 0600);
  if (!made.pages) {
    const int failure = errno;
    throw error::from_errno(
        failure == EOPNOTSUPP || failure == EISDIR ? errc::unsupported : code_for_errno(failure),
        "no segment could be made", failure,
        {fmt::format("directory {}", segment_directory), "it must be a tmpfs that can be written"});
  }
  made.locks = reopen(made.pages, O_RDWR, path);
  if (::fchmod(made.pages.get(), options.mode) != 0)
    throw error::from_errno(errc::io, "the segment's permissions could not be set", errno,
                            {fmt::format("file {}", path)});
  extend_file(made.pages.get(), 0, *total, path);
  segment_header header{};
  std::memcpy(header.magic, segment_magic, sizeof segment_magic);
  header.version = segment_version;
  header.lifetime = static_cast<std::uint32_t>(options.lifetime);
  if (::pwrite(made.pages.get(), &header, sizeof header, 0) != sizeof header)
    throw error::from_errno(errc::io, "the segment's header could not be written", errno,
                            {fmt::format("file {}", path)});
  lock(made.locks.get(), lock_byte::user, F_RDLCK, path);
  lock(made.locks.get(), lock_byte::creator, F_RDLCK, path);
  return made;
}

void name_segment(const open_segment& made, const std::string& path) {
  const std::string link = fmt::format("/proc/self/fd/{}", made.pages.get());
  for (int attempt = 0;; ++attempt) {
    if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
    const int failure = errno;
    if (failure != EEXIST)
      throw error::from_errno(code_for_errno(failure), "the segment could not be named", failure,
                              {fmt::format("file {}", path)});
    // Others may reclaim and create the same name at the same time; somebody wins soon.
    if (attempt < 10 && remove_segment(path, removal::if_dead)) continue;
    if (attempt < 10 && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT) continue;
    throw error(
        errc::already_exists, "a segment of that name is in use",
        {fmt::format("file {}", path), "attach to it with open_shared, or remove_shared it"});
  }
}

std::optional<open_segment> attach_segment(const std::string& path, access allowed) {
  const int flags = allowed == access::read_write ? O_RDWR : O_RDONLY;
  for (;;) {
    open_segment found;
    found.pages = open_name(path, flags);
    if (!found.pages && errno == ENOENT) return std::nullopt;
    if (!found.pages) throw_unopened(path, errno);
    found.lifetime = checked_header(found.pages.get(), path);
    found.locks = reopen(found.pages, flags, path);
    const int locks = found.locks.get();
    lock(locks, lock_byte::gate, F_RDLCK, path);
    if (!leads_to(path, locks)) continue;  // removed, perhaps made anew, before the gate was ours
    if (is_dead(locks, found.lifetime)) {
      unlock(locks, lock_byte::gate);
      found.locks.reset();
      if (!remove_segment(path, removal::if_dead)) return std::nullopt;
      continue;
    }
    lock(locks, lock_byte::user, F_RDLCK, path);
    unlock(locks, lock_byte::gate);
    found.bytes = data_bytes(locks, path);
    return found;
  }
}

void leave_segment(open_segment& from, const std::string& path, bool is_creator) noexcept {
  const int locks = from.locks.get();
  const bool may_remove = (from.lifetime == shared_lifetime::creator && is_creator) ||
                          from.lifetime == shared_lifetime::counted;
  // The exclusive gate needs a description that may write: a user who only reads leaves a name
  // behind that the next caller finds dead.
  const bool gated = may_remove && lock_in_time(locks, lock_byte::gate, F_WRLCK);
  // Inside the gate: of two who leave together, the second finds that the first has left. And each
  // by itself: a forked child may hold a copy of the description, and with it every lock that is
  // not let go.
  unlock(locks, lock_byte::user);
  unlock(locks, lock_byte::creator);
  if (gated && leads_to(path, locks) &&
      (from.lifetime == shared_lifetime::creator || !held_by_others(locks, lock_byte::user)))
    ::unlink(path.c_str());
  if (gated) unlock(locks, lock_byte::gate);
  from.locks.reset();
}

bool remove_segment(const std::string& path, removal when) {
  for (;;) {
    const file_descriptor file = open_name(path, O_RDWR);
    if (!file && errno == ENOENT) return false;
    // What cannot be opened is not ours to judge, unless it is us who cannot open.
    if (!file && when == removal::if_dead && !is_shortage(errno)) return false;
    if (!file) throw_unopened(path, errno);
    const auto lifetime = read_header(file.get());
    if (!lifetime && when == removal::if_dead) return false;
    if (!lifetime) checked_header(file.get(), path);
    lock(file.get(), lock_byte::gate, F_WRLCK, path);
    if (!leads_to(path, file.get())) continue;
    if (when == removal::if_dead && !is_dead(file.get(), *lifetime)) {
      unlock(file.get(), lock_byte::gate);
      return false;
    }
    const int failure = ::unlink(path.c_str()) == 0 ? 0 : errno;
    unlock(file.get(), lock_byte::gate);
    if (failure == 0) return true;
    if (when == removal::if_dead) return false;
    throw error::from_errno(code_for_errno(failure), "the segment could not be removed", failure,
                            {fmt::format("file {}", path)});
  }
}

std::optional<shared_segment> look_at_segment(const std::string& path) {
  const file_descriptor file = open_name(path, O_RDONLY);
  if (!file && is_shortage(errno)) throw_unopened(path, errno);
  if (!file) return std::nullopt;
  const auto lifetime = read_header(file.get());
  if (!lifetime) return std::nullopt;
  shared_segment seen;
  seen.bytes = data_bytes(file.get(), path);
  seen.lifetime = *lifetime;
  seen.attached = held_by_others(file.get(), lock_byte::user);
  seen.dead = is_dead(file.get(), *lifetime);
  return seen;
}

}  // namespace shale::detail
