#include "format/os/locks.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "format/os/file_io.hpp"

namespace shale::format {
namespace {

bool is_byte(const found_lock& lock, std::uint64_t byte) noexcept {
  return lock.range.first == byte && lock.range.last == byte;
}

std::string held_by(open_file& asking, const found_lock& lock) {
  const std::string holders = asking.holders_of(lock);
  return holders.empty() ? "held by a process that this one may not inspect" : "held by " + holders;
}

}  // namespace

bool try_exclusive(open_file& description, std::uint64_t byte, const std::string& path) {
  const os_result result =
      uninterrupted([&] { return description.try_lock(byte, lock_mode::exclusive); });
  if (result < 0 && result != -EAGAIN)
    throw failure(fmt::format("cannot lock byte {} of the file", byte).c_str(), result, path);
  return result >= 0;
}

error foreign_lock(open_file& asking, const found_lock& lock, const std::string& path) {
  return error(
      errc::busy, "a lock of another program is in the way",
      {"file " + path,
       fmt::format("{} lock of bytes {} to {}",
                   lock.mode == lock_mode::shared ? "a shared" : "an exclusive", lock.range.first,
                   lock.range.last),
       held_by(asking, lock),
       fmt::format("containers keep their locks from byte {} on, where no data is: end that "
                   "program, or let it lock something else",
                   live_mapper_locks)});
}

error writer_is_busy(open_file& asking, std::chrono::milliseconds waited, const std::string& path) {
  for (const std::uint64_t byte : {writer_lock, queue_lock}) {
    found_lock found;
    if (uninterrupted([&] { return asking.find_lock({byte, byte}, found); }) <= 0) continue;
    if (!is_byte(found, byte) || found.mode != lock_mode::exclusive)
      return foreign_lock(asking, found, path)
          .add_detail(fmt::format("waited {} ms for it to go", waited.count()));
    return error(errc::busy, "another transaction holds the file",
                 {"file " + path, fmt::format("waited {} ms for it to end", waited.count()),
                  fmt::format("{}, byte {}, is {}",
                              byte == writer_lock ? "the writer's lock" : "the queue's lock", byte,
                              held_by(asking, found))});
  }
  return error(errc::busy, "another transaction held the file",
               {"file " + path, fmt::format("waited {} ms for it to end", waited.count())});
}

void probe_locks(open_file& first, open_file& second, const std::string& path) {
  os_result result = uninterrupted([&] { return second.try_lock(probe_lock, lock_mode::shared); });
  found_lock found;
  const bool taken = result == -EAGAIN;
  if (result >= 0 || taken)
    result = uninterrupted([&] { return first.find_lock({probe_lock, probe_lock}, found); });
  if (taken && result > 0) throw foreign_lock(first, found, path);
  // These are the answers of kernels and file systems that know no such locks. Any other is a
  // failure.
  const bool unknown = (result == 0 && !taken) || result == -EINVAL || result == -ENOLCK ||
                       result == -EOPNOTSUPP || result == -ENOSYS;
  if (result < 0 && !unknown) throw failure("cannot lock a byte of the file", result, path);
  if (unknown)
    throw error(errc::unsupported,
                "the file system does not honour locks of open file descriptions",
                {"file " + path,
                 "containers need them to tell readers from writers: keep the file "
                 "on a local file system"});
}

}  // namespace shale::format
