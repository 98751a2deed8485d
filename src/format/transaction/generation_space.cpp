#include "format/transaction/generation_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "format/bytes/checksum.hpp"
#include "format/bytes/file_layout.hpp"
#include "format/os/file_io.hpp"
#include "shale/error.hpp"
#include "storage/system/pages.hpp"

namespace shale::format {

generation_space::generation_space(shared_file& file, page_reader& reader, page_ref map,
                                   std::uint64_t generation, generation_set protected_generations)
    : file_(&file),
      reader_(&reader),
      generation_(generation),
      map_tree_(tree_kind::space, reader, map, this),
      map_(map_tree_, generation, reader.end_of_file(), std::move(protected_generations),
           file.unused.take(map)),
      size_before_(size_bytes(*file.data, file.path)),
      page_writes_(*file.data, file.path) {}

// ---- the file's length --------------------------------------------------------------------------

// Nobody shortens the file while its writer lock is held. If it has become shorter, another process
// has truncated it, and the next write after its end would hide that. Returns its length.
std::uint64_t generation_space::require_no_loss() {
  const std::uint64_t size = size_bytes(*file_->data, file_->path);
  if (size < size_seen_)
    throw error(
        errc::io, "the file has become shorter during the transaction",
        {"file " + file_->path,
         fmt::format("it has {} bytes, and had {}: another process truncated it", size, size_seen_),
         "abort: `shale verify` shows whether the generation before is whole"});
  size_seen_ = size;
  return size;
}

// ---- what failed writers left -------------------------------------------------------------------

// An earlier writer may have written to a free range, and its sync may have failed. ext4 keeps such
// pages in the cache as if they were clean, and wrongly treats the blocks below them as in use. If
// they are written again, the next sync succeeds, but after a restart the blocks read as zeros.
// When a page leaves the cache, ext4 forgets this wrong state, and writing the page again works. So
// all space that the map takes leaves the cache before it is written for the first time. A page
// that the kernel keeps is punched, together with its blocks.
void generation_space::forget_old_pages() {
  range_set& cleaned = file_->cleaned;
  const range_set fresh = map_.take_fresh();
  try {
    for (const auto& range : fresh.ranges()) {
      const std::uint64_t end = std::min(range.second, size_before_);
      for (std::uint64_t first = range.first, stop = 0; first < end; first = stop) {
        stop = std::min(end, cleaned.end_of_run(first));
        if (cleaned.contains(first, stop)) continue;
        if (!file_->data->drop_cached(first, stop - first)) punch({first, stop - first});
      }
      cleaned.unite(range.first, range.second);
    }
  } catch (...) {
    map_.put_fresh_back(fresh);  // the next call tries again
    throw;
  }
}

// The kernel reads a page from the device before it writes a part of it, unless the page is in the
// cache. So the last page of a chunk, which the chunk fills in part, is first written as zeros. If
// the chunk begins in that page behind another one, that was done for the other one.
void generation_space::clear_last_page(const extent& chunk) const {
  const std::uint64_t page = chunk.end() / page_bytes * page_bytes;
  if (page == chunk.end() || page < chunk.offset || page >= size_before_) return;
  write_zeros(page, page + page_bytes);
}

void generation_space::write_zeros(std::uint64_t first, std::uint64_t end) const {
  static constexpr std::byte zeros[16 * page_bytes] = {};
  for (std::uint64_t length = 0; first < end; first += length) {
    length = std::min<std::uint64_t>(sizeof zeros, end - first);
    write_all(*file_->data, first, bytes_view(zeros).first(length), file_->path);
  }
}

// Makes a range of whole pages read as zeros. The file has blocks for them before and after. A file
// system records a hole, and then new blocks, in its journal, which takes it longer than writing a
// MiB.
void generation_space::clear(const extent& range) const {
  constexpr std::uint64_t written_bytes_max = 1u << 20;
  if (range.bytes <= written_bytes_max) return write_zeros(range.offset, range.end());
  punch(range);
  allocate_space(*file_->data, range.offset, range.bytes, file_->path);
}

void generation_space::punch(const extent& range) const {
  const os_result result =
      uninterrupted([&] { return file_->data->punch(range.offset, range.bytes); });
  if (result < 0) throw failure("cannot clear space of the file", result, file_->path);
}

// ---- extents ----------------------------------------------------------------------------------

// Runs a change of the map and of `unclaimed_`, which must agree. If memory runs out between the
// two, they contradict each other, and the transaction can only be aborted.
template <class Body>
decltype(auto) generation_space::change_space(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    broken_ = errc::out_of_memory;
    throw;
  }
}

// An allocation has two steps. First the space map finds a range. Then the range is punched and
// reserved in the file, so that it reads as zeros and later stores cannot fail for lack of space. If
// the file has blocks for it, only what the caller does not write is cleared.
// The second step can fail, for example on a full device. Everything is undone in reverse then:
//   1. The range is punched. A failed reservation may keep part of the space; this returns it to
//      the device.
//   2. The map withdraws the range: it is free again, and if the map had moved the end of the file
//      for it, the end moves back. Otherwise a failed call would make the next generation longer.
//   3. `unclaimed_` forgets the range.
// The transaction stays usable, and the caller gets the error of the file system.
extent generation_space::allocate(std::uint64_t bytes, std::uint64_t overwritten) {
  if (bytes == 0) return {};
  const std::uint64_t end_before = map_.end_of_file();
  const std::uint64_t whole = page_space(bytes);
  const extent found = change_space([&] {
    const extent taken = map_.allocate(bytes, dense_alignment(bytes));
    unclaimed_.emplace(taken.offset, whole);
    return taken;
  });
  open_file& data = *file_->data;
  const std::string& path = file_->path;
  try {
    // The range may hold old bytes of a freed range or of a killed transaction.
    const std::uint64_t size = require_no_loss();
    forget_old_pages();
    const std::uint64_t end = found.offset + whole;
    if (end <= size && data.has_space_for(found.offset, whole)) {
      const std::uint64_t cleared = found.offset + overwritten / page_bytes * page_bytes;
      if (cleared < end) clear({cleared, end - cleared});
    } else {
      // Blocks that are there may be of no use for a write, so they are given back first.
      if (found.offset < size) punch({found.offset, std::min(end, size) - found.offset});
      allocate_space(data, found.offset, whole, path);
    }
  } catch (...) {
    const os_result size = data.size();
    if (size > 0 && found.offset < static_cast<std::uint64_t>(size))
      (void)data.punch(found.offset,
                       std::min(whole, static_cast<std::uint64_t>(size) - found.offset));
    change_space([&] { map_.withdraw({found.offset, whole}, end_before); });
    unclaimed_.erase(found.offset);
    throw;
  }
  return found;
}

extent generation_space::allocate_chunk(std::uint64_t stored_bytes) {
  if (stored_bytes == 0 || stored_bytes > chunk_bytes_max)
    throw error(errc::invalid_argument, "not the size of a chunk",
                {fmt::format("1 to {} bytes, got {}", chunk_bytes_max, stored_bytes)});
  require_no_loss();
  return change_space([&] {
    const extent found = map_.allocate_chunk(stored_bytes);
    unclaimed_.emplace(found.offset, chunk_space(stored_bytes));
    forget_old_pages();
    clear_last_page(found);
    return found;
  });
}

std::uint64_t generation_space::unclaimed_space(std::uint64_t offset) const {
  const auto found = unclaimed_.find(offset);
  return found != unclaimed_.end() ? found->second : 0;
}

bool generation_space::can_claim(const extent& used, std::uint64_t space) const {
  return space != 0 && unclaimed_space(used.offset) == space;
}

void generation_space::claim(const extent& used, std::uint64_t space) {
  if (!can_claim(used, space))
    throw error(errc::invalid_argument, "an extent was not allocated by this transaction",
                {fmt::format("byte {} with {} bytes", used.offset, used.bytes)});
  unclaimed_.erase(used.offset);
}

void generation_space::give_back(const extent& unused) {
  const auto found = unclaimed_.find(unused.offset);
  if (found == unclaimed_.end())
    throw error(errc::invalid_argument, "an extent that is not this transaction's to give back",
                {fmt::format("byte {} with {} bytes", unused.offset, unused.bytes)});
  change_space([&] { map_.release(found->first, found->second); });
  unclaimed_.erase(found);
}

void generation_space::give_back_within(const extent& range) {
  auto found = unclaimed_.lower_bound(range.offset);
  while (found != unclaimed_.end() && found->first < range.end()) {
    change_space([&] { map_.release(found->first, found->second); });
    found = unclaimed_.erase(found);
  }
}

void generation_space::give_back_unclaimed() {
  for (const auto& [offset, space] : std::exchange(unclaimed_, {})) map_.release(offset, space);
}

void generation_space::release_chunk(const chunk_entry& entry) {
  map_.release(entry.offset, chunk_space(entry.stored_bytes));
}

void generation_space::reserve_rest_of_pages(const extent& mapped) const {
  open_file& data = *file_->data;
  const std::string& path = file_->path;
  const std::size_t page = shale::detail::system_page_bytes();
  const std::uint64_t end = mapped.offset + page_space(mapped.bytes);
  if (const std::uint64_t before = mapped.offset % page; before > 0)
    allocate_space(data, mapped.offset - before, before, path);
  if (end % page == 0) return;
  // The reservation ends at the end of the file, so that the file does not grow.
  const std::uint64_t pages_end =
      std::min(shale::detail::align_up(end, page), size_bytes(data, path));
  if (end < pages_end) allocate_space(data, end, pages_end - end, path);
}

// ---- pages ------------------------------------------------------------------------------------

page_ref generation_space::write(tree& changed) {
  changed.place(map_.allocate_pages(changed.unplaced()));
  return changed.write();
}

page_ref generation_space::write_map() {
  map_.write_changes();
  return map_tree_.write();
}

void generation_space::write_pages() {
  require_no_loss();
  forget_old_pages();
  page_writes_.write_all_waiting();
}

void generation_space::remember(const page_ref& map) noexcept {
  file_->unused.keep(map, map_.take_unused());
}

void generation_space::release(const extent& range) {
  map_.release(range.offset, page_space(range.bytes));
}

overflow_ref generation_space::store_overflow(bytes_view value) {
  require_no_loss();
  const extent range = map_.allocate(value.size(), page_bytes);
  forget_old_pages();
  reader_->extend(map_.end_of_file());
  // Zeros fill the last page, so that no old byte is left in it.
  std::vector<std::byte> padded(page_space(value.size()));
  std::copy(value.begin(), value.end(), padded.begin());
  write_all(*file_->data, range.offset, padded, file_->path);
  metadata_bytes_ += padded.size();
  return {range, checksum_metadata(value)};
}

page_ref generation_space::write_page(page& made, std::uint64_t offset) {
  made.stamp(generation_, offset);
  page_writes_.add(offset, made);
  if (page_writes_.full()) write_pages();
  metadata_bytes_ += page_bytes;
  const page_ref written{offset, checksum_metadata(made.bytes())};
  reader_->keep_written(written, made);
  return written;
}

}  // namespace shale::format
