// Reads and parses the files of /proc and /sys. The parsers depend on the text alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/system/known.hpp"

namespace shale::tools {

/// The tree of /proc and /sys. Tests have a tree of their own in another folder.
class system_tree {
 public:
  /// `root` precedes every path.
  explicit system_tree(std::string root = {}) : root_(std::move(root)) {}

  /// The content of a file. If the file cannot be read, the reason names it.
  known<std::string> text(const std::string& path) const;

  /// The number of entries of a folder.
  known<std::uint64_t> entries(const std::string& path) const;

 private:
  std::string root_;
};

/// "12345\n" as a number; "max" and -1 as no_limit.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// The bytes of a line "Key:   123 kB"; nothing without such a line.
std::optional<std::uint64_t> parse_field(std::string_view text, std::string_view key);

/// The value of a line "Key\t: value", as in /proc/cpuinfo.
std::optional<std::string> parse_line(std::string_view text, std::string_view key);

/// The word in brackets of "always [madvise] never".
std::optional<std::string> parse_choice(std::string_view text);

/// Percent of the last 10 and 60 seconds in which some or all processes waited for memory.
struct memory_pressure {
  double some_10 = 0;
  double some_60 = 0;
  double full_10 = 0;
  double full_60 = 0;
};
std::optional<memory_pressure> parse_pressure(std::string_view text);

/// The folders with the settings of this process's control group and of its parents, up to the
/// root. `groups` is the text of /proc/self/cgroup, `controller` a name of version 1 ("cpu").
struct group_folders {
  bool unified = false;  ///< version 2
  std::vector<std::string> folders;
};
std::vector<group_folders> parse_groups(std::string_view groups, std::string_view controller);

/// The processor time that "200000 100000" (cpu.max) allows, in processors. "max 100000" is
/// no_limit.
std::optional<double> parse_quota(std::string_view text);

/// The bytes of [address, address + bytes) that lie on huge pages, from the text of
/// /proc/self/smaps. The huge pages of a mapping that extends beyond the range count as inside the
/// range, as far as they fit.
std::optional<std::uint64_t> parse_huge_bytes(std::string_view smaps, std::uintptr_t address,
                                              std::size_t bytes);

/// A mount, from its line in /proc/self/mountinfo.
struct mount_point {
  std::string folder;
  std::string type;
  std::string source;
  bool read_only = false;
};
std::optional<mount_point> parse_mount(std::string_view mountinfo, std::uint64_t mount_id);

}  // namespace shale::tools
