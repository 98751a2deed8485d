#include "storage/system/system_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>

namespace shale::detail {

namespace {

// The text of a file; empty if it cannot be read. A std::ifstream is not used, because a program
// that is started meanwhile would inherit its descriptor.
std::istringstream open_text(const std::string& path) {
  std::string text;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  char part[4096];
  while (file != nullptr) {
    const std::size_t bytes = std::fread(part, 1, sizeof part, file.get());
    if (bytes == 0) break;
    text.append(part, bytes);
  }
  return std::istringstream(std::move(text));
}

template <class Number>
std::optional<Number> number_in(const std::string& path) {
  auto in = open_text(path);
  if (Number value = 0; in >> value) return value;
  return std::nullopt;
}

void read_machine(const std::string& path, system_memory& into) {
  auto in = open_text(path);
  for (std::string key; in >> key;) {
    std::size_t kib = 0;
    if (key == "MemTotal:" && in >> kib) into.total_bytes = kib << 10;
    if (key == "MemAvailable:" && in >> kib) into.available_bytes = kib << 10;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
}

// Reads the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS".
std::optional<std::chrono::microseconds> stalled_in(const std::string& path) {
  auto in = open_text(path);
  for (std::string word; in >> word && word != "full";)
    if (word.starts_with("total="))
      return std::chrono::microseconds(std::strtoll(word.c_str() + 6, nullptr, 10));
  return std::nullopt;
}

// The limit of a group applies to all groups below it, so the lowest limit from this process's
// group up to the root counts.
void read_groups(const std::string& root, system_memory& into) {
  auto groups = open_text(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto colon = line.find(':', line.find(':') + 1);
    if (colon == std::string::npos) continue;
    const bool unified = line.starts_with("0::");
    if (!unified && line.find(":memory:") == std::string::npos) continue;
    const std::string top = root + (unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    const char* const file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    std::string path = line.substr(colon + 1);
    if (unified) into.stalled = stalled_in(top + path + "/memory.pressure");
    for (;; path.erase(path.rfind('/'))) {
      if (const auto bytes = number_in<std::size_t>(top + path + file))
        into.limit_bytes = std::min(into.limit_bytes.value_or(*bytes), *bytes);
      if (path.find('/') == std::string::npos || path == "/") break;
    }
  }
}

}  // namespace

system_memory read_system_memory(const std::string& root) {
  system_memory now;
  read_machine(root + "/proc/meminfo", now);
  read_groups(root, now);
  if (!now.stalled) now.stalled = stalled_in(root + "/proc/pressure/memory");
  return now;
}

}  // namespace shale::detail
