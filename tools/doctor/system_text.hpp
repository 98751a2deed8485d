// The texts of /proc and /sys: finding them, and what they say. Parsers take text alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/known.hpp"

namespace shale::tools {

/// Where /proc and /sys are; tests put texts of their own elsewhere.
class system_tree {
 public:
  /// `root` stands before every path.
  explicit system_tree(std::string root = {}) : root_(std::move(root)) {}

  /// The whole file. Never throws for what is not there: the reason names the file.
  known<std::string> text(const std::string& path) const;

  /// How many entries a directory has.
  known<std::uint64_t> entries(const std::string& path) const;

 private:
  std::string root_;
};

/// "12345\n" as a number; "max" and -1 as no_limit.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// The bytes of a line "Key:   123 kB"; nothing if there is none.
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

/// Folders of a control group's settings, from this process's own to the root's.
/// `groups` is /proc/self/cgroup, `controller` as version 1 calls it ("memory", "cpu").
struct group_folders {
  bool unified = false;  ///< version 2
  std::vector<std::string> folders;
};
std::vector<group_folders> parse_groups(std::string_view groups, std::string_view controller);

/// Processors' worth of time that "200000 100000" (cpu.max) allows; no_limit for "max 100000".
std::optional<double> parse_quota(std::string_view text);

/// Bytes of [address, address + bytes) that lie on huge pages of any kind, as /proc/self/smaps
/// tells it: mappings that reach beyond the range count as if their huge pages were inside first.
std::optional<std::uint64_t> parse_huge_bytes(std::string_view smaps, std::uintptr_t address,
                                              std::size_t bytes);

/// A line of /proc/self/mountinfo.
struct mount_point {
  std::string folder;
  std::string type;
  std::string source;
  bool read_only = false;
};
std::optional<mount_point> parse_mount(std::string_view mountinfo, std::uint64_t mount_id);

/// Clock ticks after boot at which the process of /proc/PID/stat began.
std::optional<std::uint64_t> parse_start_ticks(std::string_view stat);

}  // namespace shale::tools
