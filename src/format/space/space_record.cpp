#include "format/space/space_record.hpp"

#include "format/bytes/byte_order.hpp"
#include "format/bytes/file_layout.hpp"

namespace shale::format {
namespace {

constexpr std::size_t space_key_bytes = 9;

}  // namespace

std::string space_key(space_section section, std::uint64_t offset) {
  std::string key(1, static_cast<char>(section));
  append_ordered(key, offset);
  return key;
}

std::array<std::byte, space_value_bytes> encode_space_entry(const space_entry& entry) noexcept {
  std::array<std::byte, space_value_bytes> value;
  store(value.data(), entry.bytes);
  store(value.data() + 8, entry.born);
  store(value.data() + 16, entry.freed);
  return value;
}

std::optional<space_record> decode_space_record(std::string_view key, bytes_view value,
                                                std::uint64_t end_of_file) noexcept {
  if (key.size() != space_key_bytes || value.size() != space_value_bytes) return std::nullopt;
  space_record record{};
  record.section = static_cast<space_section>(key[0]);
  record.offset = load_ordered(key, 1);
  record.entry = {load<std::uint64_t>(value.data()), load<std::uint64_t>(value.data() + 8),
                  load<std::uint64_t>(value.data() + 16)};
  const space_entry& entry = record.entry;
  const bool is_live = record.section == space_section::live;
  if (!is_live && record.section != space_section::unused) return std::nullopt;
  if (record.offset < first_extent_offset || record.offset > end_of_file ||
      record.offset % chunk_alignment != 0 || entry.bytes == 0 ||
      entry.bytes % chunk_alignment != 0 || entry.bytes > end_of_file - record.offset)
    return std::nullopt;
  const bool has_life = entry.born > 0 && entry.born < entry.freed;
  if (is_live ? !has_life || entry.freed != space_entry::never
              : !(entry.is_free() || (has_life && entry.freed != space_entry::never)))
    return std::nullopt;
  return record;
}

}  // namespace shale::format
