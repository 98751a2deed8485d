// A file that appears under its name only when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shale/foreign_file.hpp"
#include "storage/file_descriptor.hpp"

namespace shale::interop {

/// A name beside `target` to write under. `publish` moves the file to its name; without it, the
/// file is removed. The random part keeps writers apart that share a directory but no process
/// table.
class pending_file {
 public:
  /// Throws   already_exists (the target, unless it may be replaced), invalid_argument (it is there
  ///          and no regular file)
  pending_file(const std::string& target, existing_file existing);
  ~pending_file();
  pending_file(pending_file&& other) noexcept;
  pending_file& operator=(pending_file&& other) noexcept;

  /// Where to create the file, with `creation` held.
  const std::string& path() const noexcept { return path_; }

  /// While it is held the process does not end by `exit_without_unfinished_files`, which removes
  /// only what is there.
  static std::unique_lock<std::mutex> creation();

  /// What it is written for; for messages.
  const std::string& target() const noexcept { return target_; }

  /// Gives the file at path(), which is durable, its name, and makes that durable. A replaced file
  /// hands on its permissions.
  /// Throws   already_exists; io, also where the name is there but may be gone after a power cut
  void publish();

 private:
  std::string target_;
  std::string path_;  // empty once published
  existing_file existing_ = existing_file::replace;
};

/// A pending file written from front to back, with repairs.
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

  pending_file pending_;
  detail::file_descriptor descriptor_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> buffer_;  // the last bytes before position_, not yet in the file
};

}  // namespace shale::interop
