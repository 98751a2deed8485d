#include "format/chunks/chunk_index.hpp"

#include <fmt/format.h>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "format/os/file_io.hpp"
#include "shale/error.hpp"

namespace shale::format {

std::string chunk_key(std::uint64_t number) {
  std::string key;
  append_ordered(key, number);
  return key;
}

std::uint64_t number_of_key(std::string_view key, const array_record& record) {
  if (key.size() != 8)
    throw error(errc::corrupt, "a chunk index is damaged",
                {fmt::format("array '{}': a key of {} bytes", record.name, key.size())});
  return load_ordered(key, 0);
}

std::optional<chunk_entry> find_chunk(const tree& index, const array_record& record,
                                      std::uint64_t number, std::uint64_t end_of_file) {
  const auto value = index.find(chunk_key(number));
  if (!value) return std::nullopt;
  return decode_chunk_entry(*value, record, number, end_of_file);
}

std::vector<numbered_chunk> list_chunks(const tree& index, const array_record& record,
                                        std::uint64_t first, std::size_t limit,
                                        std::uint64_t end_of_file) {
  std::vector<numbered_chunk> chunks;
  if (limit == 0) return chunks;
  for (auto cursor = index.seek(chunk_key(first)); cursor.valid(); cursor.next()) {
    const std::uint64_t number = number_of_key(cursor.key(), record);
    chunks.push_back(
        {number, decode_chunk_entry(cursor.short_value(), record, number, end_of_file)});
    if (chunks.size() == limit) break;
  }
  return chunks;
}

void read_chunk(open_file& file, const std::string& path, const chunk_entry& entry,
                bytes_span into) {
  if (into.size() != entry.stored_bytes)
    throw error(
        errc::invalid_argument, "a chunk is read whole",
        {fmt::format("it has {} stored bytes, got room for {}", entry.stored_bytes, into.size())});
  read_exact(file, entry.offset, into, path);
  const std::uint64_t computed = checksum_data(into);
  if (computed != entry.checksum)
    throw error(errc::corrupt, "checksum mismatch",
                {fmt::format("file {}, chunk at byte {}", path, entry.offset),
                 fmt::format("stored {:016x}, computed {:016x}", entry.checksum, computed)});
}

}  // namespace shale::format
