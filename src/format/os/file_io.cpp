#include "format/os/file_io.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "storage/files/file_descriptor.hpp"

namespace shale::format {

namespace {

error failed_call(const char* operation, errc code, int number, const std::string& path) {
  // The arguments of these calls are made by this floor, so an invalid one is not an error of the
  // caller.
  if (number == EINVAL) code = errc::io;
  return error::from_errno(code, operation, number, {"file " + path});
}

}  // namespace

error failure(const char* operation, os_result result, const std::string& path) {
  const int number = static_cast<int>(-result);
  return failed_call(operation, shale::detail::code_for_opened_file(number), number, path);
}

error opening_failure(const char* operation, os_result result, const std::string& path) {
  const int number = static_cast<int>(-result);
  return failed_call(operation, code_for_errno(number), number, path);
}

void read_exact(open_file& file, std::uint64_t offset, bytes_span into, const std::string& path) {
  while (!into.empty()) {
    const os_result n = uninterrupted([&] { return file.pread(into, offset); });
    if (n < 0)
      throw failure("cannot read file", n, path)
          .add_detail(fmt::format("{} bytes from byte {}", into.size(), offset));
    if (n == 0)
      throw error(errc::io, "the file ends too early",
                  {"file " + path,
                   fmt::format("wanted {} bytes from byte {}, none are there", into.size(), offset),
                   "it was truncated while open"});
    into = into.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void write_all(open_file& to, std::uint64_t offset, bytes_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const os_result n = uninterrupted([&] { return to.pwrite(bytes, offset); });
    // If a write of no bytes counted as a success, this would loop for ever.
    const os_result result = n == 0 ? -EIO : n;
    if (result < 0)
      throw failure("cannot write file", result, path)
          .add_detail(fmt::format("{} bytes to byte {}", bytes.size(), offset));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

error sync_failure(os_result result, const std::string& path) {
  const int number = static_cast<int>(-result);
  const bool full = code_for_errno(number) == errc::out_of_space;
  return error::from_errno(full ? errc::out_of_space : errc::io,
                           "cannot make data durable (fdatasync)", number, {"file " + path});
}

void allocate_space(open_file& file, std::uint64_t offset, std::uint64_t bytes,
                    const std::string& path) {
  const os_result result = uninterrupted([&] { return file.allocate(offset, bytes); });
  if (result < 0)
    throw failure("cannot reserve space in the file", result, path)
        .add_detail(fmt::format("{} bytes from byte {}", bytes, offset));
}

std::uint64_t size_bytes(open_file& file, const std::string& path) {
  const os_result size = uninterrupted([&] { return file.size(); });
  if (size < 0) throw failure("cannot get the file's size", size, path);
  return static_cast<std::uint64_t>(size);
}

file_identity identity_of(open_file& file, const std::string& path) {
  file_identity identity;
  const os_result result = uninterrupted([&] { return file.identify(identity); });
  if (result < 0) throw failure("cannot identify the open file", result, path);
  return identity;
}

file_identity identity_of(const bound_path& place) {
  file_identity identity;
  const os_result result =
      uninterrupted([&] { return place.files().identify(place.name(), identity); });
  if (result < 0) throw failure("cannot identify the file", result, place.shown());
  return identity;
}

namespace {

[[noreturn]] void throw_unopened(os_result result, const std::string& path) {
  if (result == -EINVAL)
    throw error(errc::invalid_argument, "not a regular file",
                {"file " + path, "it is a device or a pipe"});
  throw opening_failure("cannot open file", result, path);
}

}  // namespace

std::unique_ptr<open_file> open_existing(const bound_path& place, open_access access) {
  std::unique_ptr<open_file> opened;
  const os_result result =
      uninterrupted([&] { return place.files().open(place.name(), access, opened); });
  if (result < 0) throw_unopened(result, place.shown());
  return opened;
}

std::unique_ptr<open_file> open_unshared(const bound_path& place) {
  std::unique_ptr<open_file> opened;
  const os_result result =
      uninterrupted([&] { return place.files().open_unshared(place.name(), opened); });
  if (result < 0) throw_unopened(result, place.shown());
  return opened;
}

std::unique_ptr<open_directory> open_directory_of(const bound_path& place) {
  std::unique_ptr<open_directory> opened;
  const os_result result =
      uninterrupted([&] { return place.files().open_directory_of(place.name(), opened); });
  if (result < 0) throw opening_failure("cannot open the file's directory", result, place.shown());
  return opened;
}

}  // namespace shale::format
