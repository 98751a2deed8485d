#include "storage/shared/shared_segment.hpp"

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

#include "core/enumerator.hpp"
#include "shale/error.hpp"
#include "shale/index.hpp"
#include "storage/files/file_space.hpp"

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

// Byte positions that only locks use, far after any data.
enum class lock_byte : off_t {
  gate = off_t{1} << 62,          // segment.3
  user = (off_t{1} << 62) + 1,    // locked shared by every attached process
  creator = (off_t{1} << 62) + 2  // locked by the creator
};

// Processes hold the gate for a few system calls only. A process that holds it longer has been
// stopped.
constexpr std::chrono::milliseconds lock_timeout{2000};

constexpr std::chrono::microseconds pause_between_attempts{200};

struct flock range_of(lock_byte byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return lock;
}

bool try_lock(int descriptor, lock_byte byte, short type) noexcept {
  struct flock lock = range_of(byte, type);
  int result;
  do result = ::fcntl(descriptor, F_OFD_SETLK, &lock);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

// Whether a lock was refused because another description holds it.
bool is_held(int failure) noexcept { return failure == EAGAIN || failure == EACCES; }

// Returns false if the lock was not free in time or cannot be taken; errno tells the two cases
// apart.
bool lock_in_time(int descriptor, lock_byte byte, short type) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + lock_timeout;
  while (!try_lock(descriptor, byte, type)) {
    if (!is_held(errno) || std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(pause_between_attempts);
  }
  return true;
}

[[noreturn]] void throw_unlocked(int failure, const std::string& path) {
  const bool waited = is_held(failure);
  throw error::from_errno(waited ? errc::busy : errc::io, "the segment could not be locked",
                          failure,
                          {fmt::format("file {}", path),
                           waited ? "another process keeps attaching or removing it"
                                  : "/dev/shm must be a file system with locks, such as tmpfs"});
}

void lock(int descriptor, lock_byte byte, short type, const std::string& path) {
  if (!lock_in_time(descriptor, byte, type)) throw_unlocked(errno, path);
}

// Locks the byte exclusively unless another description holds it. Never waits.
bool lock_at_once(int descriptor, lock_byte byte, const std::string& path) {
  if (try_lock(descriptor, byte, F_WRLCK)) return true;
  if (!is_held(errno)) throw_unlocked(errno, path);
  return false;
}

void unlock(int descriptor, lock_byte byte) noexcept { try_lock(descriptor, byte, F_UNLCK); }

// Whether another description holds the byte.
bool held_by_others(int descriptor, lock_byte byte) noexcept {
  struct flock lock = range_of(byte, F_WRLCK);
  // If the call fails, assume that some process holds it: a name that stays does less harm than a
  // name that is removed while it is in use.
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

// Whether opening failed for a reason that has nothing to do with the file.
bool is_shortage(int failure) noexcept {
  return failure == EMFILE || failure == ENFILE || failure == ENOMEM;
}

// Opens another description of the same file, even if the name leads to another file by now.
file_descriptor reopen(const file_descriptor& file, int flags, const std::string& path) {
  const std::string link = fmt::format("/proc/self/fd/{}", file.get());
  file_descriptor again = open_descriptor(link, flags | O_NONBLOCK);
  if (!again)
    throw error::from_errno(errc::io, "the segment could not be opened a second time", errno,
                            {fmt::format("file {}", path), "this needs /proc"});
  return again;
}

// Only a description that may write can take the lock under which the last user removes the name,
// even if the pages are only read. A process without permission to write gets a description with
// `flags`.
file_descriptor reopen_for_locks(const file_descriptor& file, int flags, const std::string& path) {
  const std::string link = fmt::format("/proc/self/fd/{}", file.get());
  if (file_descriptor writable = open_descriptor(link, O_RDWR | O_NONBLOCK)) return writable;
  return reopen(file, flags, path);
}

[[noreturn]] void throw_unopened(const std::string& path, int failure) {
  // A symbolic link, a directory or a socket: Shale did not make it.
  const bool foreign = failure == ELOOP || failure == EISDIR || failure == ENXIO;
  const errc code = foreign ? errc::corrupt : code_for_errno(failure);
  throw error::from_errno(code, "the segment could not be opened", failure,
                          {fmt::format("file {}", path)});
}

// The lifetime in the header, or nothing if this is not a segment of Shale.
std::optional<shared_lifetime> read_header(int descriptor) noexcept {
  struct stat status {};
  segment_header header{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size < static_cast<off_t>(segment_header_bytes) ||
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
    throw error(errc::corrupt, "not a shared segment of Shale",
                {fmt::format("file {}", path),
                 "somebody else made it, or it is of a later version; map_file shows raw bytes"});
  return *lifetime;
}

// The bytes of data; 0 if another process has truncated the file into its header meanwhile.
std::size_t data_bytes(int descriptor, const std::string& path) {
  const auto all = static_cast<std::size_t>(file_bytes(descriptor, path));
  return all - std::min(all, segment_header_bytes);
}

// Every user may make names in /dev/shm. So a segment of that name may belong to another user, who
// could be hostile.
void require_trusted(int file, const std::string& path) {
  struct stat status {};
  if (::fstat(file, &status) != 0)
    throw error::from_errno(errc::io, "the segment's owner could not be determined", errno,
                            {fmt::format("file {}", path)});
  if (status.st_uid == ::geteuid() || status.st_uid == 0) return;
  throw error(
      errc::access_denied, "the segment belongs to another user",
      {fmt::format("file {}", path),
       fmt::format("it belongs to user {}, this process is user {}", status.st_uid, ::geteuid()),
       "shared_owner::anyone opens it all the same"});
}

}  // namespace

bool is_segment_name(std::string_view name) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= name_bytes_max &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::string segment_path(const std::string& name) {
  if (!is_segment_name(name))
    throw error(errc::invalid_argument, "not a name for a shared segment",
                {fmt::format("got \"{}\"", name),
                 fmt::format("wanted 1 to {} letters, digits, '.', '_' or '-'", name_bytes_max)});
  return fmt::format("{}/{}{}", segment_directory, segment_prefix, name);
}

open_segment make_segment(const std::string& path, std::size_t bytes,
                          const create_shared_options& options) {
  require_enumerator(options.lifetime, shared_lifetime::manual, "shared_lifetime");
  // Removing and reclaiming take exclusive locks, which need a description that may read and write.
  constexpr unsigned owner_bits = 0600;
  if ((options.mode & owner_bits) != owner_bits)
    throw error(errc::invalid_argument, "the owner of a segment must be able to read and write it",
                {fmt::format("file {}", path), fmt::format("got mode {:04o}", options.mode)});
  constexpr unsigned permission_bits = 0777;
  if ((options.mode & ~permission_bits) != 0)
    throw error(errc::invalid_argument, "the mode of a segment has other bits than permissions",
                {fmt::format("file {}", path),
                 fmt::format("got mode {:04o}, wanted 0600 to 0777", options.mode)});
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
  // The umask may have removed the permission to open the file again.
  if (::fchmod(made.pages.get(), options.mode) != 0)
    throw error::from_errno(errc::io, "the segment's permissions could not be set", errno,
                            {fmt::format("file {}", path)});
  made.locks = reopen(made.pages, O_RDWR, path);
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
    // Other processes may reclaim and create the same name at the same time, so try a few times.
    if (attempt < 10 && remove_segment(path, removal::if_dead)) continue;
    if (attempt < 10 && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT) continue;
    if (!look_at_segment(path))
      throw error(errc::already_exists, "the name is taken by a file that is no readable segment",
                  {fmt::format("file {}", path),
                   "it is of another program, or of a user who does not share it: choose another "
                   "name, or remove the file"});
    throw error(
        errc::already_exists, "a segment of that name is in use",
        {fmt::format("file {}", path), "attach to it with open_shared, or remove_shared it"});
  }
}

std::optional<open_segment> attach_segment(const std::string& path, access allowed,
                                           shared_owner owner) {
  require_enumerator(allowed, access::copy_on_write, "access");
  require_enumerator(owner, shared_owner::anyone, "shared_owner");
  const int flags = allowed == access::read_write ? O_RDWR : O_RDONLY;
  for (;;) {
    open_segment found;
    found.pages = open_name(path, flags);
    if (!found.pages && errno == ENOENT) return std::nullopt;
    if (!found.pages) throw_unopened(path, errno);
    if (owner == shared_owner::trusted) require_trusted(found.pages.get(), path);
    found.lifetime = checked_header(found.pages.get(), path);
    found.locks = reopen_for_locks(found.pages, flags, path);
    const int locks = found.locks.get();
    lock(locks, lock_byte::gate, F_RDLCK, path);
    if (!leads_to(path, locks)) continue;  // the name was removed before the gate was locked
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

void leave_segment(open_segment& segment, const std::string& path, bool is_creator) noexcept {
  const int locks = segment.locks.get();
  const bool may_remove = (segment.lifetime == shared_lifetime::creator && is_creator) ||
                          segment.lifetime == shared_lifetime::counted;
  // Locking the gate exclusively needs a description that may write. A user who may only read
  // leaves the name behind, and the next caller finds it dead.
  const bool gated = may_remove && lock_in_time(locks, lock_byte::gate, F_WRLCK);
  // The locks are released inside the gate, so that if two processes leave together, the second one
  // sees that the first has left. Each lock is released explicitly, because a forked child may have
  // a copy of the description, which would keep every lock that is not released.
  unlock(locks, lock_byte::user);
  unlock(locks, lock_byte::creator);
  if (gated && leads_to(path, locks) &&
      (segment.lifetime == shared_lifetime::creator || !held_by_others(locks, lock_byte::user)))
    ::unlink(path.c_str());
  if (gated) unlock(locks, lock_byte::gate);
  segment.locks.reset();
}

bool remove_segment(const std::string& path, removal mode) {
  const bool only_dead = mode != removal::always;
  for (;;) {
    const file_descriptor file = open_name(path, O_RDWR);
    if (!file && errno == ENOENT) return false;
    // If the file cannot be opened, it is not known to be dead. But a shortage in this process is
    // an error.
    if (!file && only_dead && !is_shortage(errno)) return false;
    if (!file) throw_unopened(path, errno);
    const auto lifetime = read_header(file.get());
    if (!lifetime && only_dead) return false;
    if (!lifetime) checked_header(file.get(), path);
    // Any user may make a segment and keep its gate locked.
    if (mode == removal::if_dead_at_once &&
        (!is_dead(file.get(), *lifetime) || !lock_at_once(file.get(), lock_byte::gate, path)))
      return false;
    if (mode != removal::if_dead_at_once) lock(file.get(), lock_byte::gate, F_WRLCK, path);
    if (!leads_to(path, file.get())) continue;
    if (only_dead && !is_dead(file.get(), *lifetime)) {
      unlock(file.get(), lock_byte::gate);
      return false;
    }
    const int failure = ::unlink(path.c_str()) == 0 ? 0 : errno;
    unlock(file.get(), lock_byte::gate);
    if (failure == 0) return true;
    if (only_dead) return false;
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
