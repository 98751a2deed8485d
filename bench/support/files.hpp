// Files of benchmarks, as a program uses them without Shale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace shale::bench {

/// Throws a std::runtime_error with `reason` and the text of errno.
[[noreturn]] void fail(const std::string& reason);

/// An open file, which is closed with this object.
class descriptor {
 public:
  /// Throws   std::runtime_error if the file cannot be opened
  descriptor(const std::string& path, int flags);
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor();
  operator int() const { return number_; }  // NOLINT(google-explicit-constructor)

 private:
  int number_;
};

struct free_delete {
  void operator()(void* block) const { std::free(block); }
};
using buffer = std::unique_ptr<std::byte, free_delete>;

/// Memory for O_DIRECT, on huge pages where the system gives them.
buffer aligned_buffer(std::size_t bytes);

/// Lets the system forget the bytes of a file, which are durable.
void make_cold(const std::string& path);

/// Writes `bytes` from `block` over and over, from front to end of a new file, and makes them
/// durable.
void write_plain_file(const std::string& path, const std::byte* block, std::size_t block_bytes,
                      std::uint64_t bytes);

/// Reads a file from front to end in blocks of 4 MiB.
void read_plain_file(const std::string& path);

}  // namespace shale::bench
