// A file that is written from front to back and gets its name when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shale/unfinished_file.hpp"
#include "storage/files/file_descriptor.hpp"

namespace shale::interop {

/// An unfinished file to which bytes are appended. Bytes that were appended before can be replaced.
class output_file {
 public:
  output_file(const std::string& target, existing_file existing);

  /// Bytes appended so far.
  std::uint64_t position() const noexcept { return position_; }

  /// Throws   out_of_space, io
  void append(std::span<const std::byte> bytes);
  void append(std::string_view bytes);

  /// Replaces bytes that were appended before.
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes);

  /// Makes the file durable and gives it its name.
  void publish();

 private:
  void flush();
  void write_at(std::span<const std::byte> bytes, std::uint64_t offset);

  unfinished_file pending_;
  detail::file_descriptor descriptor_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> buffer_;  // the last bytes before position_, not written yet
};

}  // namespace shale::interop
