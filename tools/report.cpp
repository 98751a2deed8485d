#include "report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "shale/error.hpp"
#include "units.hpp"

namespace shale::tools {

namespace {

class descriptor {
 public:
  explicit descriptor(int number) : number_(number) {}
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

struct free_deleter {
  void operator()(void* pointer) const { std::free(pointer); }
};

// Large enough that a fast device sees a queue of requests, small enough to forget.
constexpr std::size_t piece_bytes = 8u << 20;

// Reads until the limit or the end; nothing if the file does not support the descriptor's mode.
std::optional<std::uint64_t> read_through(int file, std::byte* buffer, std::uint64_t limit_bytes) {
  std::uint64_t total = 0;
  while (total < limit_bytes) {
    const ssize_t got = ::pread(file, buffer, piece_bytes, static_cast<off_t>(total));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EINVAL && total == 0) return std::nullopt;
    if (got < 0) throw error::from_errno(errc::io, "measure the disk's speed", errno);
    if (got == 0) break;
    total += static_cast<std::uint64_t>(got);
    // After a short read the offset is no longer aligned, and only the file's end reads short.
    if (static_cast<std::size_t>(got) < piece_bytes) break;
  }
  return total;
}

}  // namespace

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

void drop_page_cache(const std::string& path) noexcept {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return;
  ::fdatasync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

disk_speed measure_disk(const std::string& path, std::uint64_t limit_bytes) {
  const std::unique_ptr<void, free_deleter> buffer(std::aligned_alloc(4096, piece_bytes));
  if (!buffer) throw error(errc::out_of_memory, "measure the disk's speed");
  auto* bytes = static_cast<std::byte*>(buffer.get());
  disk_speed result{.file = path, .method = "O_DIRECT"};
  // Dirty pages would be written back in the middle of the measurement.
  drop_page_cache(path);
  if (const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT)); file) {
    const stopwatch clock;
    if (const std::optional<std::uint64_t> total = read_through(file.get(), bytes, limit_bytes)) {
      result.bytes = *total;
      result.seconds = clock.seconds();
      return result;
    }
  }
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file)
    throw error::from_errno(code_for_errno(errno), "measure the disk's speed", errno,
                            {"file " + path});
  result.method = "buffered, page cache dropped first";
  const stopwatch clock;
  result.bytes = read_through(file.get(), bytes, limit_bytes).value_or(0);
  result.seconds = clock.seconds();
  return result;
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
  for (const disk_speed& each : disks)
    text += fmt::format("\ndisk reads {} at {} ({}, {} in {})", each.file,
                        format_rate(each.bytes, each.seconds), each.method,
                        format_bytes(each.bytes), format_seconds(each.seconds));
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
  for (const disk_speed& each : disks)
    json["disks"].push_back({{"file", each.file},
                             {"method", each.method},
                             {"bytes", each.bytes},
                             {"seconds", each.seconds},
                             {"gb_per_s", rate(each.bytes, each.seconds)}});
  return json;
}

}  // namespace shale::tools
