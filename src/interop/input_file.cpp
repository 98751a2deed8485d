#include "interop/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/enumerator.hpp"
#include "shale/error.hpp"
#include "storage/files/file_system_kind.hpp"
#include "storage/files/opening.hpp"
#include "storage/files/whole_path.hpp"

namespace shale::interop {

input_file::input_file(const std::string& path, access allowed) : path_(path) {
  detail::require_enumerator(allowed, access::copy_on_write, "access");
  detail::require_whole_path(path);
  const int mode = allowed == access::read_write ? O_RDWR : O_RDONLY;
  descriptor_ = detail::file_descriptor(detail::open_past_leases(AT_FDCWD, path, mode | O_NOCTTY));
  if (!descriptor_)
    throw error::from_errno(code_for_errno(errno), "cannot open file", errno, {"file " + path});
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0)
    throw error::from_errno(errc::io, "cannot read the file's size", errno, {"file " + path});
  if (!S_ISREG(status.st_mode))
    throw error(errc::invalid_argument, "not a regular file", {"file " + path});
  if (detail::file_system_of(descriptor_.get()) == detail::file_system_kind::virtual_)
    throw error(errc::invalid_argument, "the kernel generates this file while it is read",
                {"file " + path, "its size is not known before: copy it to a disk first"});
  size_bytes_ = static_cast<std::uint64_t>(status.st_size);
}

std::size_t input_file::read_up_to(std::span<std::byte> into, std::uint64_t offset) const {
  std::size_t done = 0;
  while (done < into.size()) {
    constexpr std::size_t read_bytes_max = std::size_t{1} << 30;  // the kernel's limit is 2 GiB
    const ssize_t got =
        ::pread(descriptor_.get(), into.data() + done, std::min(into.size() - done, read_bytes_max),
                static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      throw error::from_errno(errc::io, "cannot read file", errno,
                              {fmt::format("file {}, byte {}", path_, offset + done)});
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void input_file::read(std::span<std::byte> into, std::uint64_t offset) const {
  const std::size_t got = read_up_to(into, offset);
  if (got < into.size())
    throw error(errc::io, "the file became shorter while it was read",
                {fmt::format("file {}, byte {}", path_, offset + got),
                 fmt::format("held {} bytes when it was opened", size_bytes_)});
}

}  // namespace shale::interop
