#include "format/generations/shared_file.hpp"

#include <fmt/format.h>

#include "format/os/file_io.hpp"
#include "format/pages/header.hpp"
#include "shale/error.hpp"

namespace shale::format {

std::shared_ptr<shared_file> open_shared_file(const bound_path& place, open_access access) {
  auto file = std::make_shared<shared_file>(place);
  const std::string& path = file->path;
  file->data = open_existing(place, access);
  file->identity = identity_of(*file->data, path);
  if (access == open_access::write)
    file->write_back = shale::detail::write_back_record::of(file->data->descriptor());
  const std::uint64_t size = size_bytes(*file->data, path);
  header_page head;
  if (size < head.size())
    throw error(
        errc::corrupt, "not a Shale container",
        {"file " + path, fmt::format("it has {} bytes, a header has {}", size, head.size())});
  read_exact(*file->data, 0, head, path);
  file->id = decode_header(head, path).id;
  if (size < first_extent_offset)
    throw error(errc::corrupt, "the container was truncated",
                {"file " + path, fmt::format("it has {} bytes, the fixed pages alone take {}", size,
                                             first_extent_offset)});
  return file;
}

}  // namespace shale::format
