#include "storage/files/file_copy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "shale/error.hpp"
#include "shale/index.hpp"
#include "storage/blocks/heap_block.hpp"

namespace shale::detail {

namespace {

// The kernel transfers at most 2 GiB per call.
constexpr std::size_t read_bytes_max = std::size_t{1} << 30;

class file_copy_block final : public heap_block {
 public:
  file_copy_block(std::size_t bytes, shale::access allowed, std::string path)
      : heap_block(bytes, bytes, memory_pool::default_pool(), allowed), path_(std::move(path)) {}

  std::string_view path() const noexcept override { return path_; }

 private:
  const std::string path_;
};

void read_extent(int descriptor, file_extent extent, std::byte* into, const std::string& path) {
  while (extent.bytes > 0) {
    const ssize_t count = ::pread(descriptor, into, std::min(extent.bytes, read_bytes_max),
                                  static_cast<off_t>(extent.offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw error::from_errno(errc::io, "the file could not be read", errno,
                              {fmt::format("file {}, byte {}", path, extent.offset)});
    if (count == 0)
      throw error(errc::io, "the file ends before the range to read",
                  {fmt::format("file {}, byte {}", path, extent.offset),
                   fmt::format("{} bytes are missing", extent.bytes)});
    into += count;
    extent.offset += static_cast<std::uint64_t>(count);
    extent.bytes -= static_cast<std::size_t>(count);
  }
}

}  // namespace

mapping_support support_for(file_system_kind kind, int open_flags, access wanted) noexcept {
  switch (kind) {
    case file_system_kind::local:
      break;
    case file_system_kind::overlay:
      // A file that was opened for writing is on the upper layer, and its mappings too.
      return (open_flags & O_ACCMODE) == O_RDWR ? mapping_support::mapped : mapping_support::copied;
    case file_system_kind::network:
      return wanted == access::read_write ? mapping_support::refused : mapping_support::copied;
    case file_system_kind::virtual_:
      return mapping_support::refused;
  }
  return mapping_support::mapped;
}

bool must_be_copied(int descriptor, access wanted, const std::string& path) {
  const file_system_kind kind = file_system_of(descriptor);
  const mapping_support support = support_for(kind, ::fcntl(descriptor, F_GETFL), wanted);
  if (support == mapping_support::refused && kind == file_system_kind::network)
    throw error(errc::unsupported, "stores cannot be shared through a network file system",
                {fmt::format("file {}", path),
                 "copy it to a local file, or open it read-only or copy-on-write"});
  if (support == mapping_support::refused)
    throw error(errc::invalid_argument, "not a file that can be mapped",
                {fmt::format("file {}", path),
                 "the kernel generates its bytes while it is read: copy it to a real file first"});
  return support == mapping_support::copied;
}

storage copy_extents(int descriptor, std::span<const file_extent> extents, access allowed,
                     const std::string& path) {
  auto block = std::make_shared<file_copy_block>(total_bytes(extents), allowed, path);
  std::byte* into = block->address();
  for (const auto& extent : extents) {
    read_extent(descriptor, extent, into, path);
    into += extent.bytes;
  }
  return storage_block::handle(std::move(block));
}

}  // namespace shale::detail
