#include "format/pages/superblock.hpp"

#include <cstring>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"

namespace shale::format {
namespace {

constexpr unsigned char magic[8] = {'S', 'H', 'A', 'L', 'E', 'S', 'B', '\n'};

constexpr std::size_t version_at = 8;
constexpr std::size_t slot_at = 12;
constexpr std::size_t uuid_at = 16;
constexpr std::size_t generation_at = 32;
constexpr std::size_t root_offset_at = 40;
constexpr std::size_t root_bytes_at = 48;
constexpr std::size_t root_checksum_at = 56;
constexpr std::size_t end_of_file_at = 72;
constexpr std::size_t incompatible_at = 80;
constexpr std::size_t read_only_compatible_at = 88;
constexpr std::size_t compatible_at = 96;
constexpr std::size_t checksum_at = superblock_bytes - 16;

// The checksum covers uuid and slot first, then all other bytes in their order, so that a sector
// that was copied from another file or slot is not valid here.
checksum128 checksum_of(const superblock_sector& sector) noexcept {
  std::array<std::byte, checksum_at> ordered;
  std::byte* end = ordered.data();
  const auto append = [&](std::size_t from, std::size_t to) {
    std::memcpy(end, sector.data() + from, to - from);
    end += to - from;
  };
  append(uuid_at, generation_at);
  append(slot_at, uuid_at);
  append(0, slot_at);
  append(generation_at, checksum_at);
  return checksum_metadata(ordered);
}

}  // namespace

superblock_sector encode_superblock(const superblock& fields, const uuid& id, std::uint32_t slot) {
  superblock_sector sector{};
  std::byte* const bytes = sector.data();
  std::memcpy(bytes, magic, sizeof magic);
  store(bytes + version_at, fields.version);
  store(bytes + slot_at, slot);
  std::memcpy(bytes + uuid_at, id.bytes.data(), id.bytes.size());
  store(bytes + generation_at, fields.generation);
  store(bytes + root_offset_at, fields.root.offset);
  store(bytes + root_bytes_at, fields.root.bytes);
  store_checksum(bytes + root_checksum_at, fields.root_checksum);
  store(bytes + end_of_file_at, fields.end_of_file);
  store(bytes + incompatible_at, fields.incompatible);
  store(bytes + read_only_compatible_at, fields.read_only_compatible);
  store(bytes + compatible_at, fields.compatible);
  store_checksum(bytes + checksum_at, checksum_of(sector));
  return sector;
}

std::optional<superblock> decode_superblock(const superblock_sector& sector, const uuid& id,
                                            std::uint32_t slot) noexcept {
  const std::byte* const bytes = sector.data();
  if (std::memcmp(bytes, magic, sizeof magic) != 0) return std::nullopt;
  if (std::memcmp(bytes + uuid_at, id.bytes.data(), id.bytes.size()) != 0) return std::nullopt;
  if (load<std::uint32_t>(bytes + slot_at) != slot) return std::nullopt;
  if (load_checksum(bytes + checksum_at) != checksum_of(sector)) return std::nullopt;
  superblock fields;
  fields.version = load<std::uint32_t>(bytes + version_at);
  fields.generation = load<std::uint64_t>(bytes + generation_at);
  fields.root = {load<std::uint64_t>(bytes + root_offset_at),
                 load<std::uint64_t>(bytes + root_bytes_at)};
  fields.root_checksum = load_checksum(bytes + root_checksum_at);
  fields.end_of_file = load<std::uint64_t>(bytes + end_of_file_at);
  fields.incompatible = load<std::uint64_t>(bytes + incompatible_at);
  fields.read_only_compatible = load<std::uint64_t>(bytes + read_only_compatible_at);
  fields.compatible = load<std::uint64_t>(bytes + compatible_at);
  return fields;
}

}  // namespace shale::format
