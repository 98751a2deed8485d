#include "interop/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "shale/error.hpp"
#include "storage/files/awaited_file.hpp"
#include "storage/files/file_size_signal.hpp"

namespace shale::interop {

namespace {
constexpr std::size_t buffer_bytes = std::size_t{1} << 18;
}  // namespace

output_file::output_file(const std::string& target, existing_file existing)
    : pending_(target, existing) {
  buffer_.reserve(buffer_bytes);
  const unfinished_file::creation making;
  descriptor_ =
      detail::open_descriptor(pending_.path(), O_RDWR | O_CREAT | O_EXCL, pending_.mode());
  if (!descriptor_)
    throw error::from_errno(code_for_errno(errno), "cannot create file", errno,
                            {"file " + pending_.target()});
  detail::awaited_file::appeared(pending_.path(), descriptor_.get());
}

void output_file::append(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() >= buffer_bytes) write_at(bytes, position_);
  else buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  position_ += bytes.size();
}

void output_file::append(std::string_view bytes) {
  append(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())));
}

void output_file::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  assert(offset <= position_ && bytes.size() <= position_ - offset);
  flush();
  write_at(bytes, offset);
}

void output_file::publish() {
  flush();
  // The sync uses the descriptor that wrote: a descriptor that is opened later may miss errors of
  // earlier writes.
  if (::fsync(descriptor_.get()) != 0)
    throw error::from_errno(detail::code_for_opened_file(errno), "cannot make durable (fsync)",
                            errno, {"file " + pending_.target()});
  // Some network file systems report errors of delayed writes at close.
  const int failure = ::close(descriptor_.release()) == 0 ? 0 : errno;
  if (failure != 0 && failure != EINTR)
    throw error::from_errno(detail::code_for_opened_file(failure), "cannot close file", failure,
                            {"file " + pending_.target()});
  pending_.publish_durable();
}

void output_file::flush() {
  write_at(buffer_, position_ - buffer_.size());
  buffer_.clear();
}

void output_file::write_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  const detail::no_file_size_signal guard;
  std::size_t done = 0;
  while (done < bytes.size()) {
    constexpr std::size_t write_bytes_max = std::size_t{1} << 30;
    const ssize_t put =
        ::pwrite(descriptor_.get(), bytes.data() + done,
                 std::min(bytes.size() - done, write_bytes_max), static_cast<off_t>(offset + done));
    if (put < 0) {
      if (errno == EINTR) continue;
      throw error::from_errno(detail::code_for_opened_file(errno), "cannot write file", errno,
                              {fmt::format("file {}, byte {}", pending_.target(), offset + done)});
    }
    done += static_cast<std::size_t>(put);
  }
}

}  // namespace shale::interop
