// Maps, reads, copies and checksums the bytes of dense arrays. Extents are mapped side by side.
// Checksums and copies go through the array segment by segment.
//
// Checksums and copies use `pread` into one buffer per thread, never the mapping. They use the same
// page cache, but resident memory grows by those buffers only, for arrays of any size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "array/elements/dense_places.hpp"
#include "format/bytes/range_set.hpp"
#include "format/generations/generation_view.hpp"
#include "shale/executor.hpp"
#include "shale/storage.hpp"
#include "shale/tensor.hpp"
#include "storage/mapped/mapped_extents.hpp"

namespace shale::arrays {

/// Maps ranges of the file side by side. Without ranges, the storage is empty. See map_extents for
/// `descriptor`.
storage map_pieces(int descriptor, std::span<const format::extent> pieces,
                   const detail::extent_options& options);

/// Maps all bytes of an array.
storage map_dense(int descriptor, const format::array_record& record,
                  const detail::extent_options& options);

/// Maps the array's bytes in a pinned generation read-only; the storage owns the pin. If the file
/// system does not allow mappings, the storage floor reads the bytes into memory instead.
storage map_dense(const format::generation_view& view, const format::array_record& record,
                  const std::string& path, std::shared_ptr<detail::segment_checksums> sums);

/// Reads bytes of the file; all of them, or throws.
using byte_reader = std::function<void(std::uint64_t offset, format::bytes_span into)>;
using byte_writer = std::function<void(std::uint64_t offset, format::bytes_view bytes)>;

/// Reads bytes [offset, offset + into.size()) of a dense array.
void read_pieces(const dense_places& places, std::uint64_t offset, format::bytes_span into,
                 const byte_reader& read);

/// Throws   corrupt if the checksum of a whole segment's bytes differs from `stored`
void require_sum(const dense_places& places, const std::string& label, std::uint64_t segment,
                 format::bytes_view bytes, std::uint64_t stored);

/// Computes the XXH3-64 of the segments in `ranges`, in parallel, and stores them in `sums`, which
/// has one for each segment of the array. Ranges consist of whole segments, in the order of the
/// array. `descriptor` is used for read-ahead only; -1 if there is none.
void sum_segments(const format::array_record& record, std::span<const format::byte_interval> ranges,
                  std::vector<std::uint64_t>& sums, const byte_reader& read, int descriptor,
                  executor& on);

/// A range of an array's bytes, and the extent that holds it from now on.
struct moved_bytes {
  format::byte_interval range;
  format::extent to;
};

/// The stored checksums of an array of `bytes` bytes, one for each segment; or none.
struct stored_sums {
  std::span<const std::uint64_t> sums{};
  std::uint64_t bytes = 0;
};

/// Copies ranges of an array's bytes to other extents, in parallel. `places` knows where the ranges
/// lie now. Each segment that lies completely in one of the ranges is compared with its checksum
/// in `stored`, if there is one, before it is written.
/// Throws   corrupt naming segment and byte, io
void copy_dense(const dense_places& places, const stored_sums& stored, const std::string& label,
                std::span<const moved_bytes> moved, const byte_reader& read,
                const byte_writer& write, int descriptor, executor& on);

/// Gives the checksums of `count` segments from `first` on; none if the array has no checksums.
using segment_sums =
    std::function<std::vector<std::uint64_t>(std::uint64_t first, std::uint64_t count)>;

/// Reads bytes [offset, offset + into.size_bytes()) of an array into a contiguous tensor, in
/// parallel. Segments that lie completely inside the range are compared with their checksums:
/// `sums` is called with the first of such segments and their count, if there are any, and returns
/// their checksums, or none.
/// Throws   corrupt naming the segment, io, what `sums` throws
void read_dense(const format::generation_view& view, const format::array_record& record,
                const std::string& label, std::uint64_t offset, const tensor& into,
                const segment_sums& sums, executor& on);

}  // namespace shale::arrays
