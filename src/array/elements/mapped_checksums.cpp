#include "array/elements/mapped_checksums.hpp"

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "array/elements/dense_bytes.hpp"
#include "core/never_destroyed.hpp"
#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "shale/executor.hpp"
#include "shale/index.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::arrays {

namespace {

using format::dense_segment_bytes;

// Has one bit for each segment. The bit is set when the segment's bytes were compared and were
// right. Relaxed order is enough: a thread that misses a bit only compares the segment again.
class compared_segments {
 public:
  explicit compared_segments(std::uint64_t count) : words_(ceil_div<std::uint64_t>(count, 64)) {}

  bool has(std::uint64_t segment) const noexcept {
    return (words_[segment / 64].load(std::memory_order_relaxed) >> (segment % 64) & 1) != 0;
  }
  void add(std::uint64_t segment) noexcept {
    words_[segment / 64].fetch_or(std::uint64_t{1} << (segment % 64), std::memory_order_relaxed);
  }

 private:
  std::vector<std::atomic<std::uint64_t>> words_;
};

// Identifies the stored bytes of one array while some generation holds them: by the file, by the
// extents in it, and by the checksum of the array's checksums. Generations of an array may share
// some of its extents.
struct array_place {
  format::file_identity file;
  format::checksum128 extents;
  std::uint64_t bytes;
  format::checksum128 sums;

  friend bool operator==(const array_place&, const array_place&) = default;
};

// Remembers the compared segments of the arrays that were used last, while the file stays open. A
// file that is opened later may be another one with the inode number of the first, or may have been
// overwritten by a copy.
class comparisons {
 public:
  static comparisons& of_process() {
    // It is never destroyed, because mappings may be used while the process ends.
    static detail::never_destroyed<comparisons> instance;
    return instance.get();
  }

  // The caller holds `opened`, the file that `place` names.
  std::shared_ptr<compared_segments> segments_of(const array_place& place,
                                                 const std::weak_ptr<const void>& opened,
                                                 std::uint64_t segments) {
    const std::lock_guard lock(mutex_);
    recent_.remove_if([](const entry& known) { return known.opened.expired(); });
    const auto found = std::find_if(recent_.begin(), recent_.end(), [&](const entry& candidate) {
      return candidate.place == place;
    });
    if (found != recent_.end()) {
      recent_.splice(recent_.begin(), recent_, found);
    } else {
      recent_.push_front({place, opened, std::make_shared<compared_segments>(segments)});
      if (recent_.size() > arrays_max) recent_.pop_back();
    }
    return recent_.front().segments;
  }

 private:
  static constexpr std::size_t arrays_max = 1024;

  struct entry {
    array_place place;
    std::weak_ptr<const void> opened;
    std::shared_ptr<compared_segments> segments;
  };

  detail::fork_safe_mutex mutex_;
  std::list<entry> recent_;  // most recently asked for first
};

// Constructed at program start, so that no fork happens while another thread constructs it.
[[maybe_unused]] const comparisons& made_at_load = comparisons::of_process();

}  // namespace

struct mapped_checksums::loaded_sums {
  std::vector<std::uint64_t> sums;
  dense_places places;
  std::shared_ptr<compared_segments> compared;
};

mapped_checksums::mapped_checksums(const format::generation_view& view,
                                   const format::array_record& record, std::string label)
    : view_(view), record_(record), label_(std::move(label)) {}

mapped_checksums::~mapped_checksums() = default;

// Reads the sums once. A failed read is tried again by the next call. A forked child finds them
// whole, or not at all.
const mapped_checksums::loaded_sums& mapped_checksums::load() {
  if (const loaded_sums* const ready = loaded_.load(std::memory_order_acquire)) return *ready;
  const std::lock_guard turn(loading_);
  if (const loaded_sums* const ready = loaded_.load(std::memory_order_relaxed)) return *ready;
  std::vector<std::uint64_t> sums = view_.dense_checksums(record_);
  const auto& dense = record_.dense();
  auto compared = comparisons::of_process().segments_of(
      {view_.file(), format::checksum_metadata(std::as_bytes(std::span(dense.extents))),
       format::array_bytes(record_), dense.checksums_checksum},
      view_.opened_file(), sums.size());
  std::unique_ptr<const loaded_sums> made(
      new loaded_sums{std::move(sums), dense_places(dense.extents), std::move(compared)});
  const detail::critical_section whole;
  owned_ = std::move(made);
  loaded_.store(owned_.get(), std::memory_order_release);
  return *owned_;
}

std::vector<std::uint64_t> mapped_checksums::read_sums(std::uint64_t first, std::uint64_t count) {
  const format::extent& table = record_.dense().checksums;
  if (table.bytes <= kept_bytes_max) {
    const auto begin = load().sums.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  if (!verified_.load(std::memory_order_relaxed)) {
    auto sums = view_.dense_checksums(record_, first, count);
    verified_.store(true, std::memory_order_relaxed);
    return sums;
  }
  std::vector<std::byte> stored(static_cast<std::size_t>(8 * count));
  view_.read(table.offset + 8 * first, stored);
  std::vector<std::uint64_t> sums;
  for (std::size_t at = 0; at < stored.size(); at += 8)
    sums.push_back(format::load<std::uint64_t>(&stored[at]));
  return sums;
}

void mapped_checksums::compare(byte_range range) {
  const loaded_sums& known = load();
  const std::uint64_t total = format::array_bytes(record_);
  const std::uint64_t end =
      ceil_div<std::uint64_t>(range.offset + range.bytes, dense_segment_bytes);
  storage buffer;
  for (std::uint64_t segment = range.offset / dense_segment_bytes; segment < end; ++segment) {
    if (known.compared->has(segment)) continue;
    if (!buffer) buffer = storage::allocate(dense_segment_bytes, &executor::current().pool());
    const std::uint64_t offset = segment * dense_segment_bytes;
    const format::bytes_span bytes{
        buffer.data(), static_cast<std::size_t>(std::min(dense_segment_bytes, total - offset))};
    read_pieces(known.places, offset, bytes, [&](std::uint64_t position, format::bytes_span into) {
      view_.read(position, into);
    });
    require_sum(known.places, label_, segment, bytes,
                known.sums[static_cast<std::size_t>(segment)]);
    known.compared->add(segment);
  }
}

std::shared_ptr<mapped_checksums> mapped_checksums_of(const format::generation_view& view,
                                                      const format::array_record& record,
                                                      const std::string& label) {
  if (record.dense().checksums.bytes == 0) return nullptr;
  return std::make_shared<mapped_checksums>(view, record, label);
}

}  // namespace shale::arrays
