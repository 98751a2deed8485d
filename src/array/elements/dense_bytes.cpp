#include "array/elements/dense_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "array/elements/prefetch.hpp"
#include "format/bytes/checksum.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

namespace {

using format::dense_segment_bytes;

// The distance between a segment that is being processed and the one that is read ahead: enough to
// keep a device busy while the threads compute.
constexpr std::uint64_t bytes_ahead = 16u << 20;

// One buffer per thread, as long as a segment. A buffer is allocated when its thread first needs
// it.
class segment_buffers {
 public:
  explicit segment_buffers(executor& on) : buffers_(static_cast<std::size_t>(on.threads())) {}

  format::bytes_span part(int worker, std::uint64_t bytes) {
    auto& buffer = buffers_[static_cast<std::size_t>(worker)];
    if (!buffer) buffer = storage::allocate(dense_segment_bytes);
    return {buffer.data(), static_cast<std::size_t>(bytes)};
  }

 private:
  std::vector<storage> buffers_;
};

// Runs `body(segment, offset, bytes, worker)` for every segment of `record`, in parallel and in
// file order. Before each segment it asks the kernel to read the one that begins `bytes_ahead`
// bytes after it.
template <class Body>
void for_each_checksum_segment(const format::array_record& record, const dense_places& places,
                               int descriptor, executor& on, Body body) {
  const std::uint64_t total = format::array_bytes(record);
  const std::uint64_t count = ceil_div(total, dense_segment_bytes);
  const auto bytes_of = [&](std::uint64_t offset) {
    return std::min(dense_segment_bytes, total - offset);
  };
  parallel::parallel_for_tiles(on, static_cast<index_t>(count), [&](index_t segment, int worker) {
    const std::uint64_t offset = static_cast<std::uint64_t>(segment) * dense_segment_bytes;
    if (const std::uint64_t later = offset + bytes_ahead; later < total)
      for (const auto& piece : places.pieces(later, bytes_of(later)))
        prefetch_range(descriptor, piece);
    body(static_cast<std::uint64_t>(segment), offset, bytes_of(offset), worker);
  });
}

}  // namespace

void read_pieces(const dense_places& places, std::uint64_t offset, format::bytes_span into,
                 const byte_reader& read) {
  for (const auto& piece : places.pieces(offset, into.size())) {
    const auto bytes = static_cast<std::size_t>(piece.bytes);
    read(piece.offset, into.first(bytes));
    into = into.subspan(bytes);
  }
}

void require_sum(const dense_places& places, const std::string& label, std::uint64_t segment,
                 format::bytes_view bytes, std::uint64_t stored) {
  const std::uint64_t computed = format::checksum_data(bytes);
  if (computed == stored) return;
  const auto place = places.pieces(segment * dense_segment_bytes, 1).front();
  throw error(errc::corrupt, "checksum mismatch",
              {fmt::format("segment {} of {}: {} bytes at byte {} of the file", segment, label,
                           bytes.size(), place.offset),
               fmt::format("stored {:016x}, computed {:016x}", stored, computed),
               "`shale verify` lists all damage"});
}

storage map_dense(int descriptor, const format::array_record& record,
                  const detail::extent_options& options) {
  const std::uint64_t bytes = format::array_bytes(record);
  if (bytes == 0) return storage::allocate(0);
  std::vector<detail::file_extent> extents;
  for (const auto& piece : dense_places(record.dense().extents).pieces(0, bytes))
    extents.push_back({piece.offset, static_cast<std::size_t>(piece.bytes)});
  return detail::map_extents(descriptor, extents, options);
}

storage map_dense(const format::generation_view& view, const format::array_record& record,
                  const std::string& path, std::shared_ptr<detail::stored_sums> sums) {
  return map_dense(view.descriptor(), record,
                   {.path = path,
                    .keep_alive = std::make_shared<format::generation_view>(view),
                    .sums = std::move(sums)})
      .as_read_only();
}

std::vector<std::uint64_t> checksum_segments(const format::array_record& record,
                                             const byte_reader& read, int descriptor,
                                             executor& on) {
  const std::uint64_t count = ceil_div(format::array_bytes(record), dense_segment_bytes);
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(count));
  const dense_places places(record.dense().extents);
  segment_buffers buffers(on);
  for_each_checksum_segment(
      record, places, descriptor, on,
      [&](std::uint64_t segment, std::uint64_t offset, std::uint64_t bytes, int worker) {
        const auto buffer = buffers.part(worker, bytes);
        read_pieces(places, offset, buffer, read);
        sums[static_cast<std::size_t>(segment)] = format::checksum_data(buffer);
      });
  return sums;
}

void copy_dense(const format::array_record& source, const std::vector<std::uint64_t>& sums,
                const std::string& label, const format::array_record& to, const byte_reader& read,
                const byte_writer& write, int descriptor, executor& on) {
  const dense_places from(source.dense().extents);
  const dense_places target(to.dense().extents);
  segment_buffers buffers(on);
  for_each_checksum_segment(
      source, from, descriptor, on,
      [&](std::uint64_t segment, std::uint64_t offset, std::uint64_t bytes, int worker) {
        auto rest = buffers.part(worker, bytes);
        read_pieces(from, offset, rest, read);
        if (!sums.empty())
          require_sum(from, label, segment, rest, sums[static_cast<std::size_t>(segment)]);
        for (const auto& piece : target.pieces(offset, bytes)) {
          write(piece.offset, rest.first(static_cast<std::size_t>(piece.bytes)));
          rest = rest.subspan(static_cast<std::size_t>(piece.bytes));
        }
      });
}

void read_dense(const format::generation_view& view, const format::array_record& record,
                const std::string& label, std::uint64_t offset, const tensor& into, executor& on) {
  const std::uint64_t bytes = into.size_bytes();
  if (bytes == 0) return;
  const std::uint64_t end = offset + bytes;
  const std::uint64_t total = format::array_bytes(record);
  const std::uint64_t first = offset / dense_segment_bytes;
  const std::uint64_t count = ceil_div(end, dense_segment_bytes) - first;
  // The checksums of the segments that lie completely inside the range.
  const std::uint64_t first_whole = ceil_div(offset, dense_segment_bytes);
  const std::uint64_t end_whole = end == total ? first + count : end / dense_segment_bytes;
  std::vector<std::uint64_t> sums;
  if (first_whole < end_whole)
    sums = view.dense_checksums(record, first_whole, end_whole - first_whole);
  auto* const target = const_cast<std::byte*>(into.data());
  const dense_places places(record.dense().extents);
  parallel::parallel_for_tiles(on, static_cast<index_t>(count), [&](index_t number, int) {
    const std::uint64_t segment = first + static_cast<std::uint64_t>(number);
    const std::uint64_t segment_end = std::min((segment + 1) * dense_segment_bytes, total);
    const std::uint64_t begin = std::max(segment * dense_segment_bytes, offset);
    const std::uint64_t to = std::min(segment_end, end);
    const format::bytes_span part{target + (begin - offset), static_cast<std::size_t>(to - begin)};
    read_pieces(places, begin, part, [&](std::uint64_t position, format::bytes_span span) {
      view.read(position, span);
    });
    if (sums.empty() || segment < first_whole || segment >= end_whole) return;
    require_sum(places, label, segment, part,
                sums[static_cast<std::size_t>(segment - first_whole)]);
  });
}

}  // namespace shale::arrays
