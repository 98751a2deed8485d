#include "format/pages/header.hpp"

#include <fmt/format.h>

#include <cstring>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

// Like PNG's magic number, it has a byte above 127 and a line end: a transfer in text mode would
// change them.
constexpr unsigned char magic[8] = {0x89, 'S', 'H', 'A', 'L', 'E', '\r', '\n'};

constexpr std::size_t version_at = 8;
constexpr std::size_t page_bytes_at = 12;
constexpr std::size_t uuid_at = 16;
constexpr std::size_t superblock_0_at = 32;
constexpr std::size_t superblock_1_at = 40;
constexpr std::size_t live_page_at = 48;
constexpr std::size_t first_extent_at = 56;
constexpr std::size_t checksum_at = page_bytes - 16;

}  // namespace

header_page encode_header(const header& fields) {
  header_page page{};
  std::memcpy(page.data(), magic, sizeof magic);
  store<std::uint32_t>(page.data() + version_at, header_version);
  store<std::uint32_t>(page.data() + page_bytes_at, page_bytes);
  std::memcpy(page.data() + uuid_at, fields.id.bytes.data(), fields.id.bytes.size());
  store(page.data() + superblock_0_at, superblock_offsets[0]);
  store(page.data() + superblock_1_at, superblock_offsets[1]);
  store(page.data() + live_page_at, live_page_offset);
  store(page.data() + first_extent_at, first_extent_offset);
  store_checksum(page.data() + checksum_at, checksum_metadata({page.data(), checksum_at}));
  return page;
}

header decode_header(const header_page& page, const std::string& path) {
  if (std::memcmp(page.data(), magic, sizeof magic) != 0)
    throw error(errc::corrupt, "not a Shale container",
                {"file " + path, "its first 8 bytes are not the magic number"});
  const checksum128 stored = load_checksum(page.data() + checksum_at);
  const checksum128 computed = checksum_metadata({page.data(), checksum_at});
  if (stored != computed)
    throw error(errc::corrupt, "checksum mismatch",
                {"file " + path + ", header page, byte 0",
                 "stored " + to_string(stored) + ", computed " + to_string(computed)});
  const auto version = load<std::uint32_t>(page.data() + version_at);
  if (version != header_version)
    throw error(errc::unsupported, "the container has a later format",
                {"file " + path, fmt::format("header version {}, this build reads version {}",
                                             version, header_version)});
  header fields;
  std::memcpy(fields.id.bytes.data(), page.data() + uuid_at, fields.id.bytes.size());
  // Version 1 fixes all other fields.
  if (!same_bytes(encode_header(fields), page))
    throw error(errc::corrupt, "the header contradicts its version",
                {"file " + path + ", header page, byte 0"});
  return fields;
}

}  // namespace shale::format
