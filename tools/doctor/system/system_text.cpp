#include "doctor/system/system_text.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace shale::tools {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\n";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// Removes the text up to `end`, and `end` itself, from `text`. Returns the text before `end`.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view piece = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return piece;
}

std::string_view take_word(std::string_view& text) {
  text = text.substr(std::min(text.find_first_not_of(' '), text.size()));
  return take_until(text, ' ');
}

template <class Number>
std::optional<Number> whole(std::string_view text, int base = 10) {
  Number number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> decimal(std::string_view text) {
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The number after `key` (as in "avg10=") in a line of words.
std::optional<double> decimal_of(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const std::string_view word = take_word(line);
    if (word.starts_with(key)) return decimal(word.substr(key.size()));
  }
  return std::nullopt;
}

// mountinfo writes blanks, tabs, line feeds and backslashes in names as \ and three octal digits.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto code = text[at] == '\\' && at + 3 < text.size()
                          ? whole<unsigned>(text.substr(at + 1, 3), 8)
                          : std::nullopt;
    if (code && *code < 256) at += 3;
    result += code && *code < 256 ? static_cast<char>(*code) : text[at];
  }
  return result;
}

struct address_range {
  std::uintptr_t first = 0;
  std::uintptr_t end = 0;
};

// The first line of a mapping in smaps, as in "7f1eee200000-7f1eee600000 r--s …".
std::optional<address_range> range_of(std::string_view line) {
  std::string_view word = take_until(line, ' ');
  const auto first = whole<std::uintptr_t>(take_until(word, '-'), 16);
  const auto end = whole<std::uintptr_t>(word, 16);
  if (!first || !end) return std::nullopt;
  return address_range{*first, *end};
}

}  // namespace

known<std::string> system_tree::text(const std::string& path) const {
  const auto failed = [&] {
    return known<std::string>::unknown(fmt::format("{}: {}", path, std::strerror(errno)));
  };
  const int file = ::open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return failed();
  std::string text;
  char piece[16384];
  ssize_t got;
  // The kernel returns smaps in pieces, so only an empty piece is the end.
  while ((got = ::read(file, piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR))
    text.append(piece, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  known<std::string> result = got < 0 ? failed() : known<std::string>(std::move(text));
  ::close(file);
  return result;
}

known<std::uint64_t> system_tree::entries(const std::string& path) const {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir((root_ + path).c_str()), &::closedir);
  if (!folder)
    return known<std::uint64_t>::unknown(fmt::format("{}: {}", path, std::strerror(errno)));
  std::uint64_t count = 0;
  while (const dirent* const entry = ::readdir(folder.get()))
    if (entry->d_name[0] != '.') ++count;
  return count;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  text = trimmed(text);
  if (text == "max" || text == "-1") return no_limit<std::uint64_t>;
  return whole<std::uint64_t>(text);
}

std::optional<std::uint64_t> parse_field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ':') != key) continue;
    line = trimmed(line);
    if (!line.ends_with(" kB")) return std::nullopt;
    const auto number = whole<std::uint64_t>(trimmed(line.substr(0, line.size() - 3)));
    if (!number || *number > no_limit<std::uint64_t> / 1024) return std::nullopt;
    return *number * 1024;
  }
  return std::nullopt;
}

std::optional<std::string> parse_line(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.find(':') == std::string_view::npos) continue;
    if (trimmed(take_until(line, ':')) == key) return std::string(trimmed(line));
  }
  return std::nullopt;
}

std::optional<std::string> parse_choice(std::string_view text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', std::min(open, text.size()));
  if (close == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(open + 1, close - open - 1));
}

std::optional<memory_pressure> parse_pressure(std::string_view text) {
  memory_pressure result;
  bool is_complete = false;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    const bool is_full = line.starts_with("full ");
    if (!is_full && !line.starts_with("some ")) continue;
    const auto last_10 = decimal_of(line, "avg10=");
    const auto last_60 = decimal_of(line, "avg60=");
    if (!last_10 || !last_60) return std::nullopt;
    (is_full ? result.full_10 : result.some_10) = *last_10;
    (is_full ? result.full_60 : result.some_60) = *last_60;
    is_complete = is_complete || !is_full;
  }
  if (!is_complete) return std::nullopt;
  return result;
}

std::vector<group_folders> parse_groups(std::string_view groups, std::string_view controller) {
  std::vector<group_folders> found;
  while (!groups.empty()) {
    std::string_view line = take_until(groups, '\n');
    const bool unified = line.starts_with("0::");
    take_until(line, ':');
    std::string_view controllers = take_until(line, ':');
    const std::string hierarchy(controllers);
    bool is_wanted = unified;
    while (!controllers.empty() && !is_wanted)
      is_wanted = take_until(controllers, ',') == controller;
    if (!is_wanted) continue;
    group_folders group{unified, {}};
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + hierarchy;
    for (std::string_view path = line; !path.empty() && path != "/";
         path = path.substr(0, std::min(path.rfind('/'), path.size())))
      group.folders.push_back(root + std::string(path));
    // In a container, the path may be the host's, while only the container's group is mounted.
    group.folders.push_back(root);
    found.push_back(std::move(group));
  }
  return found;
}

std::optional<double> parse_quota(std::string_view text) {
  text = trimmed(text);
  const std::string_view quota = take_word(text);
  if (quota == "max" || quota == "-1") return no_limit<double>;
  const auto allowed = whole<std::uint64_t>(quota);
  const auto period = whole<std::uint64_t>(take_word(text));
  if (!allowed || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*allowed) / static_cast<double>(*period);
}

std::optional<std::uint64_t> parse_huge_bytes(std::string_view smaps, std::uintptr_t address,
                                              std::size_t bytes) {
  std::uint64_t huge = 0;
  std::uint64_t inside = 0;  // bytes of the current mapping in the range
  bool is_found = false;
  while (!smaps.empty()) {
    const std::string_view line = take_until(smaps, '\n');
    if (const auto range = range_of(line)) {
      const std::uintptr_t first = std::max(range->first, address);
      const std::uintptr_t end = std::min(range->end, address + bytes);
      inside = first < end ? end - first : 0;
      is_found = is_found || inside > 0;
      continue;
    }
    if (inside == 0) continue;
    for (const std::string_view kind : {"AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"})
      if (const auto here = parse_field(line, kind)) huge += std::min(*here, inside);
  }
  if (!is_found) return std::nullopt;
  return std::min<std::uint64_t>(huge, bytes);
}

std::optional<mount_point> parse_mount(std::string_view mountinfo, std::uint64_t mount_id) {
  while (!mountinfo.empty()) {
    std::string_view line = take_until(mountinfo, '\n');
    if (whole<std::uint64_t>(take_word(line)) != mount_id) continue;
    mount_point found;
    for (int skipped = 0; skipped < 3; ++skipped) take_word(line);  // parent, device, root
    found.folder = unescaped(take_word(line));
    std::string_view options = take_word(line);
    found.read_only = take_until(options, ',') == "ro";
    while (!line.empty() && take_word(line) != "-") {
    }
    found.type = unescaped(take_word(line));
    found.source = unescaped(take_word(line));
    std::string_view super_options = take_word(line);
    found.read_only = found.read_only || take_until(super_options, ',') == "ro";
    if (found.type.empty()) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

}  // namespace shale::tools
