// The bytes of dense arrays: mapped side by side, summed and copied segment by segment.
//
// Sums and copies go through `pread` into one buffer a thread, never through the mapping: the page
// cache is the same, and however large the array is, resident memory grows by those buffers alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/container_file.hpp"
#include "shale/executor.hpp"
#include "shale/storage.hpp"
#include "shale/tensor.hpp"

namespace shale::arrays {

/// The pieces of the file that hold bytes [offset, offset + bytes) of a dense array, in order.
std::vector<format::extent> pieces_of(const format::dense_layout& layout, std::uint64_t offset,
                                      std::uint64_t bytes);

/// The array's bytes, mapped; fresh empty memory if it has none. See map_extents for `descriptor`.
storage map_dense(int descriptor, const format::array_record& record, access allowed,
                  const std::string& path, std::shared_ptr<void> keep_alive);

/// The array's bytes in a pinned generation, mapped read-only; the storage owns the pin. (Where the
/// file system does not allow mappings, the storage floor reads them into memory instead.)
storage map_dense(const format::generation_view& view, const format::array_record& record,
                  const std::string& path);

/// Reads bytes of the file; all of them, or throws.
using byte_reader = std::function<void(std::uint64_t offset, format::bytes_span into)>;
using byte_writer = std::function<void(std::uint64_t offset, format::bytes_view bytes)>;

/// XXH3-64 of every segment, in parallel. `descriptor` serves for hints only; -1 is none.
std::vector<std::uint64_t> checksum_segments(const format::array_record& record,
                                             const byte_reader& read, int descriptor, executor& on);

/// Copies an array's bytes from its extents in `from` into those in `to`, in parallel.
void copy_dense(const format::array_record& from, const format::array_record& to,
                const byte_reader& read, const byte_writer& write, int descriptor, executor& on);

/// Bytes [offset, offset + into.size_bytes()) of an array into a contiguous tensor, in parallel.
/// Segments that lie inside the range as a whole are compared with their checksums.
/// Throws   corrupt naming the segment, io
void read_dense(const format::generation_view& view, const format::array_record& record,
                const std::string& label, std::uint64_t offset, const tensor& into, executor& on);

}  // namespace shale::arrays
