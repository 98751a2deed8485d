#include "array/elements/dense_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "array/elements/prefetch.hpp"
#include "format/bytes/checksum.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

namespace {

using format::dense_segment_bytes;

// The distance between a segment that is being processed and the one that is read ahead: enough to
// keep a device busy while the threads compute.
constexpr index_t segments_ahead = 16;

// One buffer per thread, as long as a segment. A buffer is allocated when its thread first needs
// it.
class segment_buffers {
 public:
  explicit segment_buffers(executor& on)
      : pool_(on.pool()), buffers_(static_cast<std::size_t>(on.threads())) {}

  format::bytes_span part(int worker, std::uint64_t bytes) {
    auto& buffer = buffers_[static_cast<std::size_t>(worker)];
    if (!buffer) buffer = storage::allocate(dense_segment_bytes, &pool_);
    return {buffer.data(), static_cast<std::size_t>(bytes)};
  }

 private:
  memory_pool& pool_;
  std::vector<storage> buffers_;
};

// The segments of some ranges, numbered from 0 on.
class segment_list {
 public:
  explicit segment_list(std::span<const format::byte_interval> ranges) : ranges_(ranges) {
    for (const auto& range : ranges) {
      firsts_.push_back(count_);
      count_ += static_cast<index_t>(ceil_div(range.end - range.first, dense_segment_bytes));
    }
  }

  struct segment {
    std::size_t range;     // the number of the range that it is part of
    std::uint64_t offset;  // in the array
    std::uint64_t bytes;

    std::uint64_t number() const noexcept { return offset / dense_segment_bytes; }
  };

  index_t size() const noexcept { return count_; }

  segment operator[](index_t position) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), position);
    const auto range = static_cast<std::size_t>(after - firsts_.begin()) - 1;
    const std::uint64_t offset =
        ranges_[range].first +
        static_cast<std::uint64_t>(position - firsts_[range]) * dense_segment_bytes;
    return {range, offset, std::min(dense_segment_bytes, ranges_[range].end - offset)};
  }

 private:
  std::span<const format::byte_interval> ranges_;
  std::vector<index_t> firsts_;  // for each range: the number of segments in the ranges before it
  index_t count_ = 0;
};

// Runs `body(segment, worker)` for every segment of the ranges, in parallel and in their order.
// Before each segment it asks the kernel to read the one that comes `segments_ahead` later.
template <class Body>
void for_each_checksum_segment(const dense_places& places,
                               std::span<const format::byte_interval> ranges, int descriptor,
                               executor& on, Body body) {
  const segment_list segments(ranges);
  parallel::parallel_for_tiles(on, segments.size(), [&](index_t position, int worker) {
    if (position + segments_ahead < segments.size()) {
      const auto later = segments[position + segments_ahead];
      for (const auto& piece : places.pieces(later.offset, later.bytes))
        prefetch_range(descriptor, piece);
    }
    body(segments[position], worker);
  });
}

// The checksum of a part of the array, if the part is a whole segment.
const std::uint64_t* sum_of(const stored_sums& stored, const segment_list::segment& part) {
  const std::uint64_t number = part.number();
  if (number >= stored.sums.size() || part.offset != number * dense_segment_bytes) return nullptr;
  if (part.bytes != std::min(dense_segment_bytes, stored.bytes - part.offset)) return nullptr;
  return &stored.sums[static_cast<std::size_t>(number)];
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

storage map_pieces(int descriptor, std::span<const format::extent> pieces,
                   const detail::extent_options& options) {
  if (pieces.empty()) return storage::allocate(0);
  std::vector<detail::file_extent> extents;
  for (const auto& piece : pieces)
    extents.push_back({piece.offset, static_cast<std::size_t>(piece.bytes)});
  return detail::map_extents(descriptor, extents, options);
}

storage map_dense(int descriptor, const format::array_record& record,
                  const detail::extent_options& options) {
  return map_pieces(descriptor,
                    dense_places(record.dense().extents).pieces(0, format::array_bytes(record)),
                    options);
}

storage map_dense(const format::generation_view& view, const format::array_record& record,
                  const std::string& path, std::shared_ptr<detail::segment_checksums> sums) {
  return map_dense(view.descriptor(), record,
                   {.path = path,
                    .keep_alive = std::make_shared<format::generation_view>(view),
                    .sums = std::move(sums)})
      .as_read_only();
}

void sum_segments(const format::array_record& record, std::span<const format::byte_interval> ranges,
                  std::vector<std::uint64_t>& sums, const byte_reader& read, int descriptor,
                  executor& on) {
  const dense_places places(record.dense().extents);
  segment_buffers buffers(on);
  for_each_checksum_segment(
      places, ranges, descriptor, on, [&](const segment_list::segment& segment, int worker) {
        const auto buffer = buffers.part(worker, segment.bytes);
        read_pieces(places, segment.offset, buffer, read);
        sums[static_cast<std::size_t>(segment.number())] = format::checksum_data(buffer);
      });
}

void copy_dense(const dense_places& places, const stored_sums& stored, const std::string& label,
                std::span<const moved_bytes> moved, const byte_reader& read,
                const byte_writer& write, int descriptor, executor& on) {
  std::vector<format::byte_interval> ranges;
  for (const moved_bytes& part : moved) ranges.push_back(part.range);
  segment_buffers buffers(on);
  for_each_checksum_segment(places, ranges, descriptor, on,
                            [&](const segment_list::segment& segment, int worker) {
                              const auto bytes = buffers.part(worker, segment.bytes);
                              read_pieces(places, segment.offset, bytes, read);
                              if (const std::uint64_t* sum = sum_of(stored, segment))
                                require_sum(places, label, segment.number(), bytes, *sum);
                              const moved_bytes& part = moved[segment.range];
                              write(part.to.offset + (segment.offset - part.range.first), bytes);
                            });
}

namespace {

// Reads bytes of the file into a part of `target`. If `target` maps a file that has lost these
// bytes, the system cannot store into them, and reading fails. Populating them fails too, with an
// error that names the target's file and says why.
void read_into_storage(const format::generation_view& view, std::uint64_t offset,
                       const storage& target, format::bytes_span part) {
  try {
    view.read(offset, part);
  } catch (const error& failed) {
    if (failed.os_errno() == EFAULT)
      target.populate({static_cast<std::size_t>(part.data() - target.data()), part.size()},
                      populate_for::store);
    throw;
  }
}

}  // namespace

void read_dense(const format::generation_view& view, const format::array_record& record,
                const std::string& label, std::uint64_t offset, const tensor& into,
                const segment_sums& sums, executor& on) {
  const std::uint64_t bytes = into.size_bytes();
  if (bytes == 0) return;
  const std::uint64_t end = offset + bytes;
  const std::uint64_t total = format::array_bytes(record);
  const std::uint64_t first = offset / dense_segment_bytes;
  const std::uint64_t count = ceil_div(end, dense_segment_bytes) - first;
  // The checksums of the segments that lie completely inside the range.
  const std::uint64_t first_whole = ceil_div(offset, dense_segment_bytes);
  const std::uint64_t end_whole = end == total ? first + count : end / dense_segment_bytes;
  std::vector<std::uint64_t> known;
  if (first_whole < end_whole) known = sums(first_whole, end_whole - first_whole);
  auto* const target = const_cast<std::byte*>(into.data());
  const dense_places places(record.dense().extents);
  parallel::parallel_for_tiles(on, static_cast<index_t>(count), [&](index_t number, int) {
    const std::uint64_t segment = first + static_cast<std::uint64_t>(number);
    const std::uint64_t segment_end = std::min((segment + 1) * dense_segment_bytes, total);
    const std::uint64_t begin = std::max(segment * dense_segment_bytes, offset);
    const std::uint64_t to = std::min(segment_end, end);
    const format::bytes_span part{target + (begin - offset), static_cast<std::size_t>(to - begin)};
    read_pieces(places, begin, part, [&](std::uint64_t position, format::bytes_span span) {
      read_into_storage(view, position, into.storage(), span);
    });
    if (known.empty() || segment < first_whole || segment >= end_whole) return;
    require_sum(places, label, segment, part,
                known[static_cast<std::size_t>(segment - first_whole)]);
  });
}

}  // namespace shale::arrays
