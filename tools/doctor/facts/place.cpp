#include "doctor/facts/place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "data/array_facts.hpp"
#include "doctor/system/open_file.hpp"
#include "notation/address.hpp"
#include "shale/container.hpp"
#include "shale/error.hpp"
#include "shale/npz.hpp"
#include "shale/raw.hpp"
#include "shale/t7.hpp"

namespace shale::tools {

namespace {

constexpr std::size_t trial_bytes = std::size_t{4} << 20;  // two huge pages

known<bool> works(int result) {
  if (result == 0) return true;
  if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return false;
  return known<bool>::unknown(std::strerror(errno));
}

// Whether a lock on one descriptor excludes another descriptor of the same file.
known<bool> try_locks(int file) {
  const open_file other(fmt::format("/proc/self/fd/{}", file), O_RDWR);
  if (other.get() < 0)
    return known<bool>::unknown(fmt::format("no second opening: {}", std::strerror(errno)));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  if (const auto locked = works(::fcntl(file, F_OFD_SETLK, &lock)); !locked || !*locked)
    return locked;
  lock.l_pid = 0;
  if (::fcntl(other.get(), F_OFD_GETLK, &lock) != 0)
    return known<bool>::unknown(std::strerror(errno));
  return lock.l_type != F_UNLCK;
}

known<std::uint64_t> try_mapping(int file, const system_tree& system) {
  using result = known<std::uint64_t>;
  try {
    const storage mapped = map_file(file, {.access = access::read_write});
    if (mapped.kind() != storage_kind::file) return result::unknown("files are read here");
    mapped.populate({0, mapped.size_bytes()}, populate_for::store);
    const known<std::string> smaps = system.text("/proc/self/smaps");
    if (!smaps) return result::unknown(smaps.why);
    const auto huge = parse_huge_bytes(*smaps, reinterpret_cast<std::uintptr_t>(mapped.data()),
                                       mapped.size_bytes());
    return huge ? result(*huge) : result::unknown("/proc/self/smaps does not show the mapping");
  } catch (const error& failure) {
    return result::unknown(std::string(failure.message()));
  }
}

void try_folder(place_facts& facts, const system_tree& system) {
  const open_file file(facts.folder, O_TMPFILE | O_RDWR, 0600);
  if (file.get() < 0) {
    facts.failure = errno == EOPNOTSUPP || errno == EISDIR
                        ? "files without a name cannot be made there"
                        : std::strerror(errno);
    return;
  }
  facts.trial.locks = try_locks(file.get());
  constexpr auto bytes = static_cast<off_t>(trial_bytes);
  facts.trial.reserves = works(::fallocate(file.get(), 0, 0, bytes));
  const bool is_reserved = facts.trial.reserves && *facts.trial.reserves;
  if (!is_reserved && ::ftruncate(file.get(), bytes) != 0) {
    facts.trial.punches = known<bool>::unknown(std::strerror(errno));
    return;
  }
  // Without reserved space, writing could fill a disk that others use.
  if (is_reserved) {
    facts.trial.mapped_bytes = trial_bytes;
    facts.trial.huge_bytes = try_mapping(file.get(), system);
  }
  constexpr int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  facts.trial.punches = works(::fallocate(file.get(), punch, 0, bytes / 2));
}

known<mapping_support> support_of(const std::string& path, access wanted) {
  try {
    return mapping_support_at(path, wanted);
  } catch (const error& failure) {
    return known<mapping_support>::unknown(std::string(failure.message()));
  }
}

known<std::vector<leftover>> leftovers_of(const place_facts& facts) {
  try {
    if (facts.is_folder) return find_leftovers(facts.folder);
    return find_leftovers(facts.folder, facts.path.substr(facts.path.rfind('/') + 1));
  } catch (const error& failure) {
    return known<std::vector<leftover>>::unknown(std::string(failure.message()));
  }
}

// Opens a file as the commands do that read it. Files of unknown formats are read as they are.
void open_as_commands_do(const std::string& path) {
  switch (format_of(path).value_or(file_format::raw)) {
    case file_format::shale:
      static_cast<void>(container::open(path).latest());
      return;
    case file_format::npy:
      if (const auto problem = describe_npy(path).problem) throw error(*problem);
      return;
    case file_format::npz:
      static_cast<void>(npz_file::open(path));
      return;
    case file_format::t7:
      static_cast<void>(t7_file::open(path));
      return;
    case file_format::raw:
      static_cast<void>(read_raw(path, dtype::uint8, {.shape = dims{0}}));
      return;
  }
}

file_facts look_at_file(const std::string& path, const struct stat& status) {
  file_facts facts;
  if (!S_ISREG(status.st_mode)) {
    facts.not_opened = "it is a pipe, a socket or a device";
    return facts;
  }
  try {
    open_as_commands_do(path);
  } catch (const error& failure) {
    facts.not_opened = fmt::format("{} [{}]", failure.message(), name(failure.code()));
  }
  // Files of other formats are replaced, not changed.
  if (format_of(path) == file_format::shale &&
      ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    facts.not_written = std::strerror(errno);
  return facts;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

known<mount_point> mount_of(const std::string& path, const system_tree& system) {
  using result = known<mount_point>;
#ifdef STATX_MNT_ID
  struct statx about {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &about) != 0)
    return result::unknown(fmt::format("{}: {}", path, std::strerror(errno)));
  if ((about.stx_mask & STATX_MNT_ID) == 0) return result::unknown("kernels before 5.8 do not say");
  const known<std::string> mounts = system.text("/proc/self/mountinfo");
  if (!mounts) return result::unknown(mounts.why);
  const auto found = parse_mount(*mounts, about.stx_mnt_id);
  return found ? result(*found) : result::unknown("it is outside what /proc/self/mountinfo lists");
#else
  static_cast<void>(system);
  return result::unknown("not asked: built without statx");
#endif
}

place_facts look_at_place(const std::string& wanted, const system_tree& system) {
  // Writers replace the file that a link leads to, in the folder of that file.
  std::error_code no_link;
  const std::string path = std::filesystem::is_symlink(wanted, no_link)
                               ? std::filesystem::weakly_canonical(wanted, no_link).string()
                               : wanted;
  struct stat status {};
  struct statvfs space {};
  if (::stat(path.c_str(), &status) != 0 || ::statvfs(path.c_str(), &space) != 0)
    throw error::from_errno(code_for_errno(errno), fmt::format("cannot look at '{}'", path), errno);
  place_facts facts;
  facts.path = path;
  facts.is_folder = S_ISDIR(status.st_mode);
  facts.folder = facts.is_folder ? path : folder_of(path);
  if (!facts.is_folder) facts.file = look_at_file(path, status);
  facts.mount = mount_of(path, system);
  facts.reading = support_of(path, access::read_only);
  facts.writing = support_of(path, access::read_write);
  facts.size_bytes = std::uint64_t{space.f_blocks} * space.f_frsize;
  facts.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  facts.files = space.f_files;
  facts.free_files = space.f_favail;
  if (facts.reading && *facts.reading == mapping_support::refused)
    facts.failure = "the kernel generates its files";
  else try_folder(facts, system);
  facts.leftovers = leftovers_of(facts);
  return facts;
}

}  // namespace shale::tools
