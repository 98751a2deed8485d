// What a mapping can be asked: which of its pages come, stay, go, and reach the device.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "shale/error.hpp"
#include "storage/mapped_block.hpp"
#include "storage/pages.hpp"

// Newer than some C libraries.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace shale::detail {

namespace {

// One WILLNEED reads at most the device's read-ahead, of which this is the kernel's default, and
// drops the rest of the request silently.
constexpr std::size_t prefetch_step = std::size_t{128} << 10;

// Waits out what is merely not possible this instant; false with `failure` set otherwise.
bool populate_run(std::byte* address, std::size_t bytes, populate_for use, int& failure) noexcept {
  const int advice = use == populate_for::load ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (::madvise(address, bytes, advice) == 0) return true;
    failure = errno;
    if (failure != EINTR && failure != EAGAIN) return false;
    if (failure == EAGAIN) ::sched_yield();
  }
  return false;
}

// For kernels that cannot populate (before 5.14): a touch of each page, with the guard behind it.
__attribute__((no_sanitize("address", "thread"))) void touch(std::byte* address, std::size_t bytes,
                                                             populate_for use) noexcept {
  for (std::size_t at = 0; at < bytes; at += page_bytes()) {
    if (use == populate_for::load)
      static_cast<void>(*static_cast<volatile std::byte*>(address + at));
    else  // dirties the page without a chance to overwrite what another thread stores
      __atomic_fetch_or(reinterpret_cast<unsigned char*>(address + at), 0, __ATOMIC_RELAXED);
  }
}

}  // namespace

// ---- positions ----------------------------------------------------------------------------------

// The part with that byte of the map, or the last one. Under layout_; parts_ is not empty.
const mapped_block::part* mapped_block::part_at(std::size_t map_position) const noexcept {
  const auto after =
      std::upper_bound(parts_.begin() + 1, parts_.end(), map_position,
                       [](std::size_t position, const part& each) { return position < each.at; });
  return &*(after - 1);
}

// The bytes from `map_position` on, up to `last` and to the end of the part.
mapped_block::piece mapped_block::piece_at(std::size_t map_position,
                                           std::size_t last) const noexcept {
  const std::lock_guard lock(layout_);
  const part* const in = part_at(map_position);
  return {reserved_.address() + map_position, std::min(last, in->at + in->bytes) - map_position,
          in->file_offset + (map_position - in->at)};
}

template <class Visit>
void mapped_block::for_each_piece(byte_range range, Visit visit) const {
  const std::size_t last = skew_ + range.offset + range.bytes;
  for (std::size_t at = skew_ + range.offset; at < last;) {
    const piece next = piece_at(at, last);
    visit(next);
    at += next.bytes;
  }
}

mapped_block::page_run mapped_block::pages_of(const piece& where) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(where.address);
  const std::size_t before = first % page_bytes();
  return {where.address - before, align_up(before + where.bytes, page_bytes())};
}

std::optional<std::uint64_t> mapped_block::file_offset(std::size_t at) const noexcept {
  const std::lock_guard lock(layout_);
  if (parts_.empty()) return std::nullopt;
  const part* const in = part_at(skew_ + at);
  return in->file_offset + (skew_ + at - in->at);
}

// ---- pages --------------------------------------------------------------------------------------

void mapped_block::advise(access_pattern pattern, byte_range range) const noexcept {
  const int advice = pattern == access_pattern::sequential ? MADV_SEQUENTIAL
                     : pattern == access_pattern::random   ? MADV_RANDOM
                                                           : MADV_NORMAL;
  for_each_piece(range, [&](const piece& each) {
    const auto pages = pages_of(each);
    ::madvise(pages.address, pages.bytes, advice);
  });
}

void mapped_block::prefetch(byte_range range) const noexcept {
  for_each_piece(range, [](const piece& each) {
    const auto pages = pages_of(each);
    for (std::size_t at = 0; at < pages.bytes; at += prefetch_step)
      ::madvise(pages.address + at, std::min(prefetch_step, pages.bytes - at), MADV_WILLNEED);
  });
}

void mapped_block::populate(byte_range range, populate_for use) const {
  check_mark();
  for_each_piece(range, [&](const piece& each) {
    const auto pages = pages_of(each);
    int failure = 0;
    if (populate_run(pages.address, pages.bytes, use, failure)) return;
    if (failure == EINVAL) touch(pages.address, pages.bytes, use);
    else throw_unpopulated(pages, align_down(each.file_offset, page_bytes()), use, failure);
  });
  check_mark();
}

// Finds the first page that cannot be had, and says what became of it.
void mapped_block::throw_unpopulated(page_run pages, std::uint64_t file_offset, populate_for use,
                                     int failure) const {
  std::size_t at = 0;
  for (const std::size_t step : {huge_page_bytes, page_bytes()}) {
    int again = 0;
    while (at < pages.bytes &&
           populate_run(pages.address + at, std::min(step, pages.bytes - at), use, again))
      at += step;
    if (at >= pages.bytes) break;
    failure = again;
  }
  const std::uint64_t lost = file_offset + std::min(at, pages.bytes - page_bytes());
  if (failure == ENOMEM)
    throw error::from_errno(errc::out_of_memory, "a mapped range could not be brought into memory",
                            failure, {place_in_file(lost)});
  // A device that is gone does not even know the file's size.
  struct stat about {};
  const bool known = ::fstat(source_.descriptor, &about) == 0;
  if (const auto present = static_cast<std::uint64_t>(about.st_size); known && lost >= present)
    throw error(errc::io, "the file has become shorter than its mapping",
                {place_in_file(lost), fmt::format("the file now ends at byte {}", present),
                 "another process truncated it while it was mapped"});
  if (use == populate_for::store && stores_reach_the_file() &&
      ::fallocate(source_.descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(lost),
                  static_cast<off_t>(page_bytes())) != 0 &&
      (errno == ENOSPC || errno == EDQUOT))
    throw error::from_errno(
        errc::out_of_space, "a mapped range has no space on the device", errno,
        {place_in_file(lost), "the file is sparse there: free space, or create it with its space"});
  throw error::from_errno(errc::io, "the device could not deliver a mapped range", failure,
                          {place_in_file(lost), "its bytes are lost or damaged there"});
}

void mapped_block::evict(byte_range range, eviction how) const noexcept {
  // What this process stored into private pages exists nowhere else: they may be swapped, not
  // dropped.
  const bool shared = made_for_ != access::copy_on_write;
  for_each_piece(range, [&](const piece& each) {
    const auto pages = pages_of(each);
    ::madvise(pages.address, pages.bytes, shared ? MADV_DONTNEED : MADV_PAGEOUT);
    // The kernel rounds inwards, and leaves dirty pages alone.
    if (shared && how == eviction::system)
      ::posix_fadvise(source_.descriptor, static_cast<off_t>(each.file_offset),
                      static_cast<off_t>(each.bytes), POSIX_FADV_DONTNEED);
  });
}

void mapped_block::start_writeback(byte_range range) const noexcept {
  if (!stores_reach_the_file()) return;
  for_each_piece(range, [&](const piece& each) {
    ::sync_file_range(source_.descriptor, static_cast<off_t>(each.file_offset),
                      static_cast<off_t>(each.bytes), SYNC_FILE_RANGE_WRITE);
  });
}

// The system does not say which of the bytes.
void mapped_block::throw_unwritten(const piece& which, int failure) const {
  throw error::from_errno(
      failure == ENOSPC || failure == EDQUOT ? errc::out_of_space : errc::io,
      "stored bytes could not be written to the device", failure,
      {place_in_file(which.file_offset), fmt::format("among {} bytes from there", which.bytes),
       "the file may hold old and new bytes there; the failure is final"});
}

void mapped_block::finish_writeback(byte_range range) const {
  if (!stores_reach_the_file()) return;
  check_mark();
  for_each_piece(range, [&](const piece& each) {
    if (::sync_file_range(
            source_.descriptor, static_cast<off_t>(each.file_offset),
            static_cast<off_t>(each.bytes),
            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) == 0)
      return;
    throw_unwritten(each, errno);
  });
  check_mark();
}

void mapped_block::flush(byte_range range, flush_mode mode) const {
  if (!stores_reach_the_file()) return;
  check_mark();
  if (mode == flush_mode::async) return start_writeback(range);
  for_each_piece(range, [&](const piece& each) {
    const auto pages = pages_of(each);
    if (::msync(pages.address, pages.bytes, MS_SYNC) == 0) return;
    throw_unwritten(each, errno);
  });
  check_mark();  // msync reports nothing about pages that a fault replaced
}

std::size_t mapped_block::resident_bytes(byte_range range) const {
  constexpr std::size_t pages_max = std::size_t{1} << 16;
  std::vector<unsigned char> in_memory;
  std::size_t resident = 0;
  for_each_piece(range, [&](const piece& each) {
    const auto pages = pages_of(each);
    const std::size_t page = page_bytes();
    for (std::size_t at = 0; at < pages.bytes; at += pages_max * page) {
      const std::size_t bytes = std::min(pages_max * page, pages.bytes - at);
      in_memory.resize(bytes / page);
      if (::mincore(pages.address + at, bytes, in_memory.data()) != 0)
        throw error::from_errno(errc::io, "residency could not be read", errno,
                                {place_in_file(each.file_offset)});
      resident += page * static_cast<std::size_t>(std::count_if(in_memory.begin(), in_memory.end(),
                                                                [](auto p) { return p & 1; }));
      // Of the pages at the ends, only what the range covers.
      if (at == 0 && (in_memory.front() & 1) != 0)
        resident -= static_cast<std::size_t>(each.address - pages.address);
      if (at + bytes == pages.bytes && (in_memory.back() & 1) != 0)
        resident -=
            static_cast<std::size_t>((pages.address + pages.bytes) - (each.address + each.bytes));
    }
  });
  return resident;
}

}  // namespace shale::detail
