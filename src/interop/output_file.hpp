// A file written from front to back, which appears under its name when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shale/foreign_file.hpp"
#include "storage/file_descriptor.hpp"

namespace shale::interop {

/// An unfinished file that is appended to, and repaired.
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

  /// Makes everything durable under its name.
  void publish();

 private:
  void flush();
  void write_at(std::span<const std::byte> bytes, std::uint64_t offset);

  unfinished_file pending_;
  detail::file_descriptor descriptor_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> buffer_;  // the last bytes before position_, not yet in the file
};

}  // namespace shale::interop
