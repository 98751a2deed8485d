// What the system says of memory: how much there is, and whether somebody waits for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace shale::detail {

/// Empty where the system does not say.
struct system_memory {
  std::optional<std::size_t> total_bytes{};      ///< of the machine
  std::optional<std::size_t> available_bytes{};  ///< of the machine, without swapping
  std::optional<std::size_t> limit_bytes{};      ///< the lowest of this process's cgroups
  /// How long some task has waited for memory since the machine started: of this process's cgroup,
  /// else of the machine.
  std::optional<std::chrono::microseconds> stalled{};
};

/// Reads /proc and /sys/fs/cgroup below `root`; some ten small files, about 0.2 ms.
system_memory read_system_memory(const std::string& root = "");

}  // namespace shale::detail
