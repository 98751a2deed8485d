#include "data/disk_speed.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>

#include "shale/error.hpp"
#include "terminal/stopwatch.hpp"

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

// Large enough to give a fast device a queue of requests, and small in relation to memory.
constexpr std::size_t piece_bytes = 8u << 20;

// Reads up to the limit or the end; returns nothing if the file does not support the mode of the
// descriptor.
std::optional<std::uint64_t> read_through(int file, std::byte* buffer, std::uint64_t limit_bytes) {
  std::uint64_t total = 0;
  while (total < limit_bytes) {
    const ssize_t got = ::pread(file, buffer, piece_bytes, static_cast<off_t>(total));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EINVAL && total == 0) return std::nullopt;
    if (got < 0) throw error::from_errno(errc::io, "cannot measure the disk's speed", errno);
    if (got == 0) break;
    total += static_cast<std::uint64_t>(got);
    // Only a read at the end of the file is short. The offset after it would not be aligned.
    if (static_cast<std::size_t>(got) < piece_bytes) break;
  }
  return total;
}

}  // namespace

void drop_page_cache(const std::string& path) noexcept {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return;
  ::fdatasync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

disk_speed measure_disk(const std::string& path, std::uint64_t limit_bytes) {
  const std::unique_ptr<void, free_deleter> buffer(std::aligned_alloc(4096, piece_bytes));
  if (!buffer) throw error(errc::out_of_memory, "no memory to measure the disk's speed");
  auto* bytes = static_cast<std::byte*>(buffer.get());
  disk_speed result{.file = path, .method = "O_DIRECT"};
  // The kernel would otherwise write dirty pages during the measurement.
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
    throw error::from_errno(code_for_errno(errno), "cannot measure the disk's speed", errno,
                            {"file " + path});
  result.method = "buffered, page cache dropped first";
  const stopwatch clock;
  result.bytes = read_through(file.get(), bytes, limit_bytes).value_or(0);
  result.seconds = clock.seconds();
  return result;
}

}  // namespace shale::tools
