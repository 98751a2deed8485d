// A foreign file that is open for reading. Reads are complete or throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shale/storage.hpp"
#include "storage/files/file_descriptor.hpp"

namespace shale::interop {

/// Threads  reads may run concurrently, because each passes its own offset
class input_file {
 public:
  /// Opens for reading; for writing too if stores through `allowed` must reach the file.
  /// Throws   not_found, access_denied, io; invalid_argument unless it is a regular file
  explicit input_file(const std::string& path, access allowed = access::read_only);

  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return descriptor_.get(); }

  /// The size at the time of opening.
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

  /// Fills `into` from byte `offset` on.
  /// Throws   io, also if the file ends before the range does: callers have already compared the
  ///          range with size_bytes()
  void read(std::span<std::byte> into, std::uint64_t offset) const;

  /// Like read, but stops at the end of the file. Returns the number of bytes read.
  std::size_t read_up_to(std::span<std::byte> into, std::uint64_t offset) const;

 private:
  std::string path_;
  detail::file_descriptor descriptor_;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace shale::interop
