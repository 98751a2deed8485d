#include "doctor/leftovers.hpp"

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

#include "doctor/open_file.hpp"
#include "doctor/system_text.hpp"
#include "shale/error.hpp"
#include "shale/mapped_file.hpp"

namespace shale::tools {

namespace {

bool is_decimal(std::string_view text) {
  return !text.empty() && text.size() <= 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The 64 random bits that keep writers apart which share no process table.
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

// Cuts what follows the last `mark` off `text`; nothing without a mark that something precedes.
std::optional<std::string_view> cut_behind(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view behind = text.substr(at + mark.size());
  text = text.substr(0, at);
  return behind;
}

// Long names are cut before they are prolonged.
bool is_for(const leftover_name& name, std::string_view target) {
  constexpr std::size_t longest_kept = 200;
  return target.empty() || name.target == target ||
         (name.target.size() >= longest_kept && target.starts_with(name.target));
}

// Whether a process of that number runs that may have written what was last changed `then`.
bool may_be_writing(std::uint64_t process, const struct timespec& then) {
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
  return start <= then.tv_sec + rounding_seconds;
}

// 0 if no process of this machine has the file open but us, whatever namespace it is in; else why
// that is not known, EAGAIN if one has. A lease is granted to the only opener.
int ask_for_openers(int file) {
  // Breaking a lease sends a signal: one that nothing heeds.
  ::fcntl(file, F_SETSIG, SIGURG);
  if (::fcntl(file, F_SETLEASE, F_WRLCK) != 0) return errno;
  ::fcntl(file, F_SETLEASE, F_UNLCK);
  return 0;
}

// Whether other machines may have files open there, of which this one knows nothing.
bool is_shared_with_others(int file, const std::string& path) {
  constexpr std::uint32_t fuse = 0x65735546;  // virtiofs, sshfs: some are, and none say so
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

void judge(leftover& each, int file, const struct stat& status) {
  const auto settle = [&](leftover_state state, std::string why) {
    each.state = state;
    each.why = std::move(why);
  };
  if (is_shared_with_others(file, each.path))
    return settle(leftover_state::unclear, "a process of another machine may be writing it");
  if (each.name.process && may_be_writing(*each.name.process, status.st_mtim))
    return settle(leftover_state::written, fmt::format("process {} is alive", *each.name.process));
  switch (const int failure = ask_for_openers(file)) {
    case 0:
      return settle(leftover_state::abandoned,
                    each.name.process ? fmt::format("process {} is gone", *each.name.process)
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

// Nothing for what is no regular file, somebody else's, or gone by now.
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
    const auto tag = cut_behind(rest, ".");
    if (tag && is_random(*tag)) return leftover_name{std::string(rest), std::nullopt, false};
    if (tag && is_decimal(*tag)) return leftover_name{std::string(rest), number_of(*tag), false};
    return std::nullopt;
  }
  if (rest.ends_with(".tmp")) {
    rest.remove_suffix(4);
    const auto tag = cut_behind(rest, ".");
    if (tag && is_random(*tag)) return leftover_name{std::string(rest), std::nullopt, true};
    return std::nullopt;
  }
  const auto numbers = cut_behind(rest, ".new-");
  if (!numbers) return std::nullopt;
  std::string_view process = *numbers;
  const auto serial = cut_behind(process, "-");
  if (!serial || !is_decimal(*serial) || !is_decimal(process)) return std::nullopt;
  return leftover_name{std::string(rest), number_of(process), false};
}

std::vector<leftover> find_leftovers(const std::string& folder, std::string_view target) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open)
    throw error::from_errno(code_for_errno(errno), "list files", errno, {"directory " + folder});
  std::vector<leftover> found;
  while (const dirent* const each = ::readdir(open.get())) {
    auto name = parse_leftover(each->d_name);
    if (!name || !is_for(*name, target)) continue;
    const std::string slash = folder.ends_with('/') ? "" : "/";
    if (auto seen = look_at(folder + slash + each->d_name, *std::move(name)))
      found.push_back(*std::move(seen));
  }
  std::sort(found.begin(), found.end(),
            [](const leftover& a, const leftover& b) { return a.path < b.path; });
  return found;
}

std::vector<leftover> remove_leftovers(const std::vector<leftover>& found) {
  std::vector<leftover> gone;
  const auto is_abandoned = [](const leftover& each) {
    return each.state == leftover_state::abandoned;
  };
  if (std::none_of(found.begin(), found.end(), is_abandoned)) return gone;
  // A writer whose process cannot be seen from here closes the file for an instant before it gives
  // it its name: by the second look it has.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const leftover& each : found) {
    if (!is_abandoned(each)) continue;
    const auto again = look_at(each.path, each.name);
    if (again && is_abandoned(*again) && ::unlink(each.path.c_str()) == 0) gone.push_back(*again);
  }
  return gone;
}

}  // namespace shale::tools
