#include "commands/report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "terminal/units.hpp"

namespace shale::tools {

std::optional<std::uint64_t> peak_resident_bytes() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> status(
      std::fopen("/proc/self/status", "re"), &std::fclose);
  if (!status) return std::nullopt;
  char line[256];
  unsigned long long kibibytes = 0;
  while (std::fgets(line, sizeof line, status.get()))
    if (std::sscanf(line, "VmHWM: %llu kB", &kibibytes) == 1) return kibibytes * 1024;
  return std::nullopt;
}

std::string report::to_string() const {
  std::string text = fmt::format("{} read", format_bytes(bytes_read));
  if (tiles_decoded > 0)
    text += fmt::format(" ({} tile{}, {} stored)", format_count(tiles_decoded),
                        tiles_decoded == 1 ? "" : "s", format_bytes(stored_bytes_read));
  if (bytes_written > 0) text += fmt::format(", {} written", format_bytes(bytes_written));
  text += fmt::format(" in {}: {} on {} thread{}", format_seconds(seconds),
                      format_rate(bytes_read + bytes_written, seconds), threads,
                      threads == 1 ? "" : "s");
  if (const std::optional<std::uint64_t> peak = peak_resident_bytes())
    text += fmt::format("\npeak resident memory {} (budget {})", format_bytes(*peak),
                        format_bytes(memory_bytes));
  for (const disk_speed& disk : disks)
    text += fmt::format("\ndisk reads {} at {} ({}, {} in {})", disk.file,
                        format_rate(disk.bytes, disk.seconds), disk.method,
                        format_bytes(disk.bytes), format_seconds(disk.seconds));
  return text;
}

nlohmann::json report::to_json() const {
  const auto rate = [](std::uint64_t bytes, double time) -> nlohmann::json {
    if (!(time > 0)) return nullptr;
    return static_cast<double>(bytes) / time / 1e9;
  };
  nlohmann::json json{{"bytes_read", bytes_read},
                      {"bytes_written", bytes_written},
                      {"tiles_decoded", tiles_decoded},
                      {"stored_bytes_read", stored_bytes_read},
                      {"seconds", seconds},
                      {"gb_per_s", rate(bytes_read + bytes_written, seconds)},
                      {"threads", threads},
                      {"memory_bytes", memory_bytes},
                      {"peak_rss_bytes", nullptr},
                      {"disks", nlohmann::json::array()}};
  if (const std::optional<std::uint64_t> peak = peak_resident_bytes())
    json["peak_rss_bytes"] = *peak;
  for (const disk_speed& disk : disks)
    json["disks"].push_back({{"file", disk.file},
                             {"method", disk.method},
                             {"bytes", disk.bytes},
                             {"seconds", disk.seconds},
                             {"gb_per_s", rate(disk.bytes, disk.seconds)}});
  return json;
}

}  // namespace shale::tools
