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
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>

#include "doctor/system/open_file.hpp"
#include "doctor/system/system_text.hpp"
#include "shale/error.hpp"
#include "shale/mapped_file.hpp"

namespace shale::tools {

namespace {

bool is_decimal(std::string_view text) {
  return !text.empty() && text.size() <= 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whether the text is 64 random bits. They distinguish writers of different process tables.
bool is_random(std::string_view text) {
  return text.size() == 16 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Removes the last `mark` and the text after it from `text`. Returns the text after the mark;
// nothing if there is no mark or no text before it.
std::optional<std::string_view> cut_after(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view rest = text.substr(at + mark.size());
  text = text.substr(0, at);
  return rest;
}

// The target may be longer than the name tells, because temporary names contain a bounded part of
// it.
bool is_for(const leftover_name& name, std::string_view target) {
  constexpr std::size_t longest_kept = 100;
  return target.empty() || name.target == target ||
         (name.target.size() >= longest_kept && target.starts_with(name.target));
}

// Whether a process with this number runs and began before `changed`, the last change of the file.
bool may_be_writing(std::uint64_t process, const struct timespec& changed) {
  if (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) return false;
  const known<std::string> stat = system_tree().text(fmt::format("/proc/{}/stat", process));
  const auto ticks = stat ? parse_start_ticks(*stat) : std::nullopt;
  if (!ticks) return true;
  timespec now{};
  timespec since_boot{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto start = now.tv_sec - since_boot.tv_sec + static_cast<time_t>(*ticks / per_second);
  constexpr time_t rounding_seconds = 2;
  return start <= changed.tv_sec + rounding_seconds;
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

void judge(leftover& found, int file, const struct stat& status) {
  const auto settle = [&](leftover_state state, std::string why) {
    found.state = state;
    found.why = std::move(why);
  };
  const std::optional<std::uint64_t>& process = found.name.process;
  if (is_shared_with_others(file, found.path))
    return settle(leftover_state::unclear, "a process of another machine may be writing it");
  if (process && may_be_writing(*process, status.st_mtim))
    return settle(leftover_state::written, fmt::format("process {} is alive", *process));
  switch (const int failure = find_openers(file)) {
    case 0:
      return settle(leftover_state::abandoned, process ? fmt::format("process {} is gone", *process)
                                                       : "no process has it open");
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
  judge(result, file.get(), status);
  return result;
}

}  // namespace

std::optional<leftover_name> parse_leftover(std::string_view file_name) {
  std::string_view rest = file_name;
  if (rest.starts_with('.') && rest.ends_with(".partial")) {
    rest = rest.substr(1, rest.size() - 1 - std::string_view(".partial").size());
    const auto tag = cut_after(rest, ".");
    if (tag && is_random(*tag)) return leftover_name{std::string(rest), std::nullopt, false};
    if (tag && is_decimal(*tag)) return leftover_name{std::string(rest), number_of(*tag), false};
    return std::nullopt;
  }
  if (rest.ends_with(".tmp")) {
    rest.remove_suffix(4);
    const auto tag = cut_after(rest, ".");
    if (tag && is_random(*tag)) return leftover_name{std::string(rest), std::nullopt, true};
    return std::nullopt;
  }
  const auto numbers = cut_after(rest, ".new-");
  if (!numbers) return std::nullopt;
  std::string_view process = *numbers;
  const auto serial = cut_after(process, "-");
  if (!serial || !is_decimal(*serial) || !is_decimal(process)) return std::nullopt;
  return leftover_name{std::string(rest), number_of(process), false};
}

std::vector<leftover> find_leftovers(const std::string& folder, std::string_view target) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open)
    throw error::from_errno(code_for_errno(errno), "list files", errno, {"directory " + folder});
  std::vector<leftover> found;
  while (const dirent* const entry = ::readdir(open.get())) {
    auto name = parse_leftover(entry->d_name);
    if (!name || !is_for(*name, target)) continue;
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
