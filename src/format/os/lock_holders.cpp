#include "format/os/lock_holders.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

#include "core/printable.hpp"

namespace shale::format {
namespace {

constexpr int holders_named_max = 4;

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return c >= '0' && c <= '9'; });
}

std::string process_name(const std::string& number) {
  std::string command;
  std::ifstream command_file("/proc/" + number + "/comm");
  std::getline(command_file, command);
  const bool is_this = number == std::to_string(::getpid());
  // Every process chooses its own name, of any bytes.
  return fmt::format("{} {} ({})", is_this ? "this process" : "process", number,
                     shale::detail::printable(command));
}

// The parts of a lock's line in /proc/PID/fdinfo/DESCRIPTOR that do not depend on the process: the
// mode, and inode and range. The line also has the device's numbers, but on some file systems they
// differ from those of stat.
struct lock_text {
  std::string mode;
  std::string place;

  bool is_in(const std::string& line) const {
    return line.starts_with("lock:") && line.find(mode) != std::string::npos &&
           line.ends_with(place);
  }
};

bool holds(const std::filesystem::path& descriptors, const lock_text& lock) {
  std::error_code failed;
  std::filesystem::directory_iterator entry(descriptors, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    std::ifstream status(entry->path());
    for (std::string line; std::getline(status, line);)
      if (lock.is_in(line)) return true;
  }
  return false;
}

}  // namespace

std::string lock_holders(int descriptor, const found_lock& lock) {
  if (lock.process > 0) return process_name(std::to_string(lock.process));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return {};
  constexpr auto end = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  const lock_text wanted{
      lock.mode == lock_mode::shared ? " READ " : " WRITE ",
      fmt::format(":{} {} {}", status.st_ino, lock.range.first,
                  lock.range.last >= end ? std::string("EOF") : std::to_string(lock.range.last))};
  std::string holders;
  int named = 0;
  std::error_code failed;
  std::filesystem::directory_iterator entry("/proc", failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string number = entry->path().filename();
    if (!is_number(number) || !holds(entry->path() / "fdinfo", wanted)) continue;
    if (++named > holders_named_max) return holders + ", …";
    if (!holders.empty()) holders += ", ";
    holders += process_name(number);
  }
  return holders;
}

}  // namespace shale::format
