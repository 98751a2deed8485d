#include "doctor/facts/leftovers.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "doctor/system/open_file.hpp"
#include "notation/address.hpp"
#include "shale/error.hpp"
#include "shale/mapped_file.hpp"

namespace shale::tools {

namespace {

// Whether the text is 64 random bits. They distinguish writers of different process tables.
bool is_random(std::string_view text) {
  return text.size() == 16 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Temporary names contain at most so many bytes of the target's name.
constexpr std::size_t longest_kept = 100;

// Whether Shale writes files of this name: arrays and pictures. The suffix of a name that was cut
// is not known.
bool is_of_shale(std::string_view target) {
  return target.size() == longest_kept || format_of(target) || target.ends_with(".png");
}

// Removes the last period and the text after it from `text`. Returns the text after the period;
// nothing if there is no period or no text before it.
std::optional<std::string_view> cut_last_part(std::string_view& text) {
  const std::size_t at = text.rfind('.');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

// The target's name may be longer than the part of it in the temporary name.
bool is_for(const leftover_name& name, std::string_view target) {
  return target.empty() || name.target == target ||
         (name.target.size() >= longest_kept && target.starts_with(name.target));
}

// Finds out whether another process of this machine, in any namespace, has the file open: the
// kernel grants a lease only if no other process has. Returns 0 if none has, EAGAIN if one has, and
// another error number if that is unknown.
int find_openers(int file) {
  // Breaking a lease sends a signal. The default action of SIGURG is to do nothing.
  ::fcntl(file, F_SETSIG, SIGURG);
  if (::fcntl(file, F_SETLEASE, F_WRLCK) != 0) return errno;
  ::fcntl(file, F_SETLEASE, F_UNLCK);
  return 0;
}

// Whether processes of other machines may have the file open, which this machine cannot see.
bool is_shared_with_others(int file, const std::string& path) {
  // virtiofs and sshfs are shared, and the system does not tell which FUSE file systems are.
  constexpr std::uint32_t fuse = 0x65735546;
  struct statfs about {};
  return ::fstatfs(file, &about) != 0 || static_cast<std::uint32_t>(about.f_type) == fuse ||
         mapping_support_at(path, access::read_write) == mapping_support::refused;
}

bool begins_like_a_container(int file) {
  constexpr char magic[8] = {'\x89', 'S', 'H', 'A', 'L', 'E', '\r', '\n'};
  char found[8];
  return ::pread(file, found, sizeof found, 0) == sizeof found &&
         std::memcmp(found, magic, sizeof magic) == 0;
}

void judge(leftover& found, int file) {
  const auto settle = [&](leftover_state state, std::string why) {
    found.state = state;
    found.why = std::move(why);
  };
  if (is_shared_with_others(file, found.path))
    return settle(leftover_state::unclear, "a process of another machine may be writing it");
  switch (const int failure = find_openers(file)) {
    case 0:
      if (!found.name.is_ours)
        return settle(leftover_state::unclear, "another program may have made it");
      return settle(leftover_state::abandoned, "no process has it open");
    case EAGAIN:
      return settle(leftover_state::written, "a process has it open");
    case EACCES:
      return settle(leftover_state::unclear, "it belongs to another user");
    default:
      return settle(leftover_state::unclear,
                    fmt::format("who has it open is not known: {}", std::strerror(failure)));
  }
}

// Examines one file; nothing if it is not a regular file, is not Shale's, or is gone.
std::optional<leftover> look_at(std::string path, leftover_name name) {
  leftover result{std::move(path), std::move(name), 0, leftover_state::unclear, {}};
  const open_file file(result.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (file.get() < 0 && errno == EACCES) {
    result.why = "it belongs to another user";
    return result;
  }
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return std::nullopt;
  if (result.name.is_container && !begins_like_a_container(file.get())) return std::nullopt;
  result.bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;
  judge(result, file.get());
  return result;
}

}  // namespace

std::optional<leftover_name> parse_leftover(std::string_view file_name) {
  constexpr std::string_view partial = ".partial";  // `.NAME.RANDOM.partial`
  constexpr std::string_view temporary = ".tmp";    // `NAME.RANDOM.tmp`
  const bool is_container = file_name.ends_with(temporary);
  if (!is_container && !(file_name.starts_with('.') && file_name.ends_with(partial)))
    return std::nullopt;
  std::string_view rest = file_name;
  if (!is_container) rest.remove_prefix(1);
  rest.remove_suffix(std::min(rest.size(), (is_container ? temporary : partial).size()));
  const auto tag = cut_last_part(rest);
  if (!tag || !is_random(*tag)) return std::nullopt;
  return leftover_name{std::string(rest), is_container, is_container || is_of_shale(rest)};
}

std::vector<leftover> find_leftovers(const std::string& folder, std::string_view target) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open)
    throw error::from_errno(code_for_errno(errno), "cannot list files", errno,
                            {"directory " + folder});
  std::vector<leftover> found;
  while (const dirent* const entry = ::readdir(open.get())) {
    auto name = parse_leftover(entry->d_name);
    if (!name || !is_for(*name, target)) continue;
    name->is_ours = name->is_ours || !target.empty();
    const std::string slash = folder.ends_with('/') ? "" : "/";
    if (auto seen = look_at(folder + slash + entry->d_name, *std::move(name)))
      found.push_back(*std::move(seen));
  }
  std::sort(found.begin(), found.end(),
            [](const leftover& a, const leftover& b) { return a.path < b.path; });
  return found;
}

std::vector<leftover> remove_leftovers(const std::vector<leftover>& found) {
  std::vector<leftover> removed;
  const auto is_abandoned = [](const leftover& file) {
    return file.state == leftover_state::abandoned;
  };
  if (std::none_of(found.begin(), found.end(), is_abandoned)) return removed;
  // A writer closes the file shortly before it renames the file. If its process is invisible from
  // here, the file seems abandoned in between. The second examination comes after the rename.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const leftover& file : found) {
    if (!is_abandoned(file)) continue;
    const auto again = look_at(file.path, file.name);
    if (again && is_abandoned(*again) && ::unlink(file.path.c_str()) == 0)
      removed.push_back(*again);
  }
  return removed;
}

}  // namespace shale::tools
