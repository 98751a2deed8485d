#include "support/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace shale::bench {

namespace {

constexpr std::size_t mib = 1024 * 1024;

}  // namespace

void fail(const std::string& reason) {
  throw std::runtime_error(reason + ": " + std::strerror(errno));
}

descriptor::descriptor(const std::string& path, int flags)
    : number_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
  if (number_ < 0) fail("open " + path);
}

descriptor::~descriptor() { ::close(number_); }

buffer aligned_buffer(std::size_t bytes) {
  return buffer(static_cast<std::byte*>(std::aligned_alloc(2 * mib, std::max(bytes, 2 * mib))));
}

void make_cold(const std::string& path) {
  const descriptor file(path, O_RDONLY);
  if (::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0) fail("fadvise " + path);
}

void write_plain_file(const std::string& path, const std::byte* block, std::size_t block_bytes,
                      std::uint64_t bytes) {
  const descriptor file(path, O_RDWR | O_CREAT | O_TRUNC);
  for (std::uint64_t offset = 0; offset < bytes; offset += block_bytes) {
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, bytes - offset));
    if (::pwrite(file, block, part, static_cast<off_t>(offset)) != static_cast<ssize_t>(part))
      fail("pwrite " + path);
  }
  if (::fdatasync(file) != 0) fail("fdatasync " + path);
}

void read_plain_file(const std::string& path) {
  const descriptor file(path, O_RDONLY);
  const buffer block = aligned_buffer(4 * mib);
  off_t offset = 0;
  for (;;) {
    const ssize_t got = ::pread(file, block.get(), 4 * mib, offset);
    if (got < 0) fail("pread " + path);
    if (got == 0) return;
    offset += got;
  }
}

}  // namespace shale::bench
