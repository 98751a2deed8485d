// The chunk index: the tree from the numbers of an array's chunks to their entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/chunks/chunk_entry.hpp"
#include "format/os/file_system.hpp"
#include "format/pages/tree.hpp"

namespace shale::format {

std::string chunk_key(std::uint64_t number);

/// The number in a stored key, which may lie outside the grid.
/// Throws   corrupt: no chunk has such a key
std::uint64_t number_of_key(std::string_view key, const array_record& record);

/// The entry of a chunk of `record`, checked; nothing if the chunk is absent and so reads as the
/// fill value. The generation's file ends at `end_of_file`.
/// Throws   corrupt, io
std::optional<chunk_entry> find_chunk(const tree& index, const array_record& record,
                                      std::uint64_t number, std::uint64_t end_of_file);

/// Up to `limit` chunks that are present, numbers from `first` on, in order.
/// Throws   corrupt, io
std::vector<numbered_chunk> list_chunks(const tree& index, const array_record& record,
                                        std::uint64_t first, std::size_t limit,
                                        std::uint64_t end_of_file);

/// Reads a chunk's stored bytes (`into` is entry.stored_bytes long) and verifies them.
/// Throws   corrupt naming the byte offset, io
void read_chunk(open_file& file, const std::string& path, const chunk_entry& entry,
                bytes_span into);

}  // namespace shale::format
