#include "format/pins.hpp"

#include <algorithm>
#include <cerrno>

#include "format/file_io.hpp"
#include "shale/error.hpp"

namespace shale::format {
pin::pin(std::unique_ptr<open_file> description, std::uint64_t generation, const std::string& path)
    : description_(std::move(description)), generation_(generation) {
  // Nobody locks these bytes exclusively but for shrinking: then the reader tries again later.
  for (const std::uint64_t byte : {pin_locks + generation, no_shrink_lock})
    if (const os_result result =
            uninterrupted([&] { return description_->try_lock(byte, lock_mode::shared); });
        result < 0)
      throw failure("pin a generation", result, path);
}

std::vector<generation_range> scan_pins(open_file& asking, const std::string& path) {
  std::vector<generation_range> held;
  std::vector<lock_range> unknown{{pin_locks, row_locks - 1}};
  while (!unknown.empty()) {
    const lock_range within = unknown.back();
    unknown.pop_back();
    lock_range found;
    const os_result result = uninterrupted([&] { return asking.find_lock(within, found); });
    if (result < 0) throw failure("look for readers", result, path);
    if (result == 0) continue;
    held.push_back({found.first - pin_locks, found.last - pin_locks});
    if (found.first > within.first) unknown.push_back({within.first, found.first - 1});
    if (found.last < within.last) unknown.push_back({found.last + 1, within.last});
  }
  std::sort(held.begin(), held.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return held;
}

void probe_locks(open_file& first, open_file& second, const std::string& path) {
  os_result result = uninterrupted([&] { return second.try_lock(probe_lock, lock_mode::shared); });
  lock_range found;
  if (result >= 0)
    result = uninterrupted([&] { return first.find_lock({probe_lock, probe_lock}, found); });
  // What a kernel or a file system says that knows no such locks; anything else is a failure.
  const bool unknown = result == 0 || result == -EINVAL || result == -ENOLCK ||
                       result == -EOPNOTSUPP || result == -ENOSYS;
  if (result < 0 && !unknown) throw failure("try a lock", result, path);
  if (unknown)
    throw error(errc::unsupported,
                "the file system does not honour locks of open file descriptions",
                {"file " + path,
                 "containers need them to tell readers from writers: keep the file "
                 "on a local file system"});
}

}  // namespace shale::format
