// Writes ZIP archives, member by member, from front to back. It knows nothing about .npy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interop/output_file.hpp"

namespace shale::interop {

/// When the 64-bit form of sizes is used.
enum class zip64_form : std::uint8_t { when_needed, always };

struct zip_member_options {
  /// zlib's level; 0: the member is stored, at a multiple of 64 bytes.
  int deflate_level = 0;

  /// The number of bytes that will be appended; it determines the form of the sizes beforehand.
  std::uint64_t bytes = 0;
};

class zip_writer {
 public:
  zip_writer(const std::string& path, existing_file existing,
             zip64_form form = zip64_form::when_needed);
  ~zip_writer();
  zip_writer(const zip_writer&) = delete;
  zip_writer& operator=(const zip_writer&) = delete;

  void begin(std::string_view name, const zip_member_options& options);
  void append(std::span<const std::byte> bytes);

  /// Throws   invalid_argument if the number of appended bytes is not the announced one
  void end();

  /// Writes the directory and gives the file its name.
  void publish();

 private:
  struct member {
    std::string name;
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
    bool wide = false;
    std::uint32_t crc32 = 0;
    std::uint64_t stored_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t header_offset = 0;
    std::uint64_t announced_bytes = 0;
  };
  struct deflater;

  void deflate_some(std::span<const std::byte> bytes, int flush);
  std::string local_header(const member& written) const;
  void append_directory_entry(std::string& to, const member& written) const;

  output_file file_;
  zip64_form form_;
  std::vector<member> members_;
  std::unique_ptr<deflater> deflater_;
};

}  // namespace shale::interop
