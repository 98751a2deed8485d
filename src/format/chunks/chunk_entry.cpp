#include "format/chunks/chunk_entry.hpp"

#include <fmt/format.h>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "format/bytes/file_layout.hpp"
#include "shale/error.hpp"

namespace shale::format {

chunk_entry entry_of(const encoded_chunk& chunk) noexcept {
  return {0, chunk.stored.size(), checksum_data(chunk.stored), chunk.flags};
}

std::array<std::byte, 32> encode_chunk_entry(const chunk_entry& entry) noexcept {
  std::array<std::byte, 32> value{};
  store(value.data(), entry.offset);
  store(value.data() + 8, entry.stored_bytes);
  store(value.data() + 16, entry.checksum);
  store(value.data() + 24, entry.flags);
  return value;
}

chunk_entry decode_chunk_entry(bytes_view value, const array_record& record, std::uint64_t number,
                               std::uint64_t end_of_file) {
  const auto refuse = [&](const std::string& reason) {
    throw error(errc::corrupt, "a chunk's index entry is damaged",
                {fmt::format("array '{}', chunk {}", record.name, number), reason});
  };
  if (value.size() != 32) refuse(fmt::format("it has {} bytes, not 32", value.size()));
  const chunk_entry entry{load<std::uint64_t>(value.data()), load<std::uint64_t>(value.data() + 8),
                          load<std::uint64_t>(value.data() + 16),
                          load<std::uint32_t>(value.data() + 24)};
  if (load<std::uint32_t>(value.data() + 28) != 0) refuse("its reserved bytes are set");
  if (entry.stored_bytes == 0 || entry.stored_bytes > chunk_bytes(record))
    refuse(
        fmt::format("{} stored bytes, the chunk has {}", entry.stored_bytes, chunk_bytes(record)));
  // A reader allocates a whole chunk, so without this check a few stored bytes could make it
  // allocate a GiB. The product cannot overflow: a chunk has at most 2^30 bytes.
  const bool raw = (entry.flags & chunk_flag_raw) != 0;
  const std::uint64_t ratio_max = raw ? 1 : stored_ratio_max(record.chunked().stages);
  if (entry.stored_bytes * ratio_max < chunk_bytes(record))
    refuse(fmt::format("{} stored bytes cannot hold a chunk of {}", entry.stored_bytes,
                       chunk_bytes(record)));
  if (entry.offset < first_extent_offset || entry.offset % chunk_alignment != 0 ||
      entry.offset > end_of_file || chunk_space(entry.stored_bytes) > end_of_file - entry.offset)
    refuse(fmt::format("byte {} with {} bytes is not inside the file's {} bytes", entry.offset,
                       entry.stored_bytes, end_of_file));
  return entry;
}

}  // namespace shale::format
