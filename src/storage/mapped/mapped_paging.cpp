// The paging functions of mapped blocks: prefetch, populate, evict, write back, flush and count
// resident pages.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "shale/error.hpp"
#include "storage/mapped/mapped_block.hpp"
#include "storage/system/not_offered.hpp"
#include "storage/system/pages.hpp"

// Some C libraries do not define these yet.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace shale::detail {

namespace {

// Populates the pages and repeats after temporary failures. Returns false with `failure` set if
// they cannot be populated.
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

// For kernels that cannot populate (before 5.14): touches each page; the guard handles faults.
__attribute__((no_sanitize("address", "thread"))) void touch(std::byte* address, std::size_t bytes,
                                                             populate_for use) noexcept {
  for (std::size_t offset = 0; offset < bytes; offset += system_page_bytes()) {
    if (use == populate_for::load)
      static_cast<void>(*static_cast<volatile std::byte*>(address + offset));
    else  // makes the page dirty without overwriting a store of another thread
      __atomic_fetch_or(reinterpret_cast<unsigned char*>(address + offset), 0, __ATOMIC_RELAXED);
  }
}

}  // namespace

mapped_block::page_run mapped_block::pages_of(const mapped_piece& bytes_inside) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(bytes_inside.address);
  const std::size_t before = first % system_page_bytes();
  return {bytes_inside.address - before,
          align_up(before + bytes_inside.bytes, system_page_bytes())};
}

void mapped_block::advise(access_pattern pattern, byte_range range) const noexcept {
  if (belongs_to_parent()) return;  // something else may be mapped there
  const int advice = pattern == access_pattern::sequential ? MADV_SEQUENTIAL
                     : pattern == access_pattern::random   ? MADV_RANDOM
                                                           : MADV_NORMAL;
  parts_.for_each_piece(range, [&](const mapped_piece& part_of_range) {
    const auto pages = pages_of(part_of_range);
    ::madvise(pages.address, pages.bytes, advice);
  });
}

void mapped_block::prefetch(byte_range range) const noexcept {
  if (belongs_to_parent()) return;  // something else may be mapped there
  parts_.for_each_piece(range, [](const mapped_piece& found) {
    const auto pages = pages_of(found);
    for (std::size_t offset = 0; offset < pages.bytes; offset += will_need_bytes_max)
      ::madvise(pages.address + offset, std::min(will_need_bytes_max, pages.bytes - offset),
                MADV_WILLNEED);
  });
}

void mapped_block::populate(byte_range range, populate_for use) const {
  check_mark();
  parts_.for_each_piece(range, [&](const mapped_piece& found) {
    const auto pages = pages_of(found);
    int failure = 0;
    if (populate_run(pages.address, pages.bytes, use, failure)) return;
    if (failure == EINVAL) touch(pages.address, pages.bytes, use);
    else throw_unpopulated(pages, align_down(found.file_offset, system_page_bytes()), use, failure);
  });
  check_mark();
}

// Finds the first page that cannot be populated, first in steps of huge pages and then of pages,
// and throws the error for the reason: no memory, a truncated file, a full disk or a device
// failure.
void mapped_block::throw_unpopulated(page_run pages, std::uint64_t file_offset, populate_for use,
                                     int failure) const {
  std::size_t offset = 0;
  for (const std::size_t step : {huge_page_bytes, system_page_bytes()}) {
    int again = 0;
    while (offset < pages.bytes &&
           populate_run(pages.address + offset, std::min(step, pages.bytes - offset), use, again))
      offset += step;
    if (offset >= pages.bytes) break;
    failure = again;
  }
  const std::uint64_t lost = file_offset + std::min(offset, pages.bytes - system_page_bytes());
  if (failure == ENOMEM)
    throw error::from_errno(errc::out_of_memory, "a mapped range could not be brought into memory",
                            failure, {source_.place(lost)});
  // If the device is gone, even the file's size is unknown.
  const auto present = size_of_own_file();
  if (present && lost >= *present)
    throw_shorter(lost, fmt::format("the file now ends at byte {}", *present));
  if (present && use == populate_for::store && stores_reach_the_file() &&
      ::fallocate(source_.descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(lost),
                  static_cast<off_t>(system_page_bytes())) != 0 &&
      (errno == ENOSPC || errno == EDQUOT))
    throw_without_space(lost, errno);
  throw error::from_errno(errc::io, "the device could not read a mapped range", failure,
                          {source_.place(lost), "its bytes are lost or damaged there"});
}

void mapped_block::throw_without_space(std::uint64_t offset, int failure) const {
  throw error::from_errno(
      errc::out_of_space, "a mapped range has no space on the device", failure,
      {source_.place(offset), "the file is sparse there: free space, or create it with its space"});
}

void mapped_block::evict(byte_range range, eviction scope) const noexcept {
  if (belongs_to_parent()) return;  // something else may be mapped there
  // Stores into private pages exist nowhere else: such pages may be swapped, but not dropped.
  const bool shared = source_.access != access::copy_on_write;
  parts_.for_each_piece(range, [&](const mapped_piece& found) {
    const auto pages = pages_of(found);
    ::madvise(pages.address, pages.bytes, shared ? MADV_DONTNEED : MADV_PAGEOUT);
    // The kernel rounds the range inwards to whole pages, and keeps dirty pages.
    if (shared && scope == eviction::system)
      ::posix_fadvise(source_.descriptor, static_cast<off_t>(found.file_offset),
                      static_cast<off_t>(found.bytes), POSIX_FADV_DONTNEED);
  });
}

void mapped_block::start_writeback(byte_range range) const noexcept {
  if (!stores_reach_the_file()) return;
  parts_.for_each_piece(range, [&](const mapped_piece& found) {
    if (::sync_file_range(source_.descriptor, static_cast<off_t>(found.file_offset),
                          static_cast<off_t>(found.bytes), SYNC_FILE_RANGE_WRITE) != 0 &&
        !is_not_offered(errno))
      report_unwritten(found, errno);
  });
}

// The system does not say which bytes were not written, so the whole piece is reported.
void mapped_block::report_unwritten(const mapped_piece& unwritten, int failure) const noexcept {
  source_.write_back->report(
      {.error_number = failure, .offset = unwritten.file_offset, .bytes = unwritten.bytes});
}

void mapped_block::throw_unwritten(const mapped_piece& unwritten, int failure) const {
  report_unwritten(unwritten, failure);
  source_.write_back->throw_error(source_.path);
}

void mapped_block::finish_writeback(byte_range range) const {
  if (!stores_reach_the_file()) return;
  check_mark();
  parts_.for_each_piece(range, [&](const mapped_piece& found) {
    if (::sync_file_range(
            source_.descriptor, static_cast<off_t>(found.file_offset),
            static_cast<off_t>(found.bytes),
            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) == 0)
      return;
    if (is_not_offered(errno) && ::fdatasync(source_.descriptor) == 0) return;
    throw_unwritten(found, errno);
  });
  check();
}

void mapped_block::flush(byte_range range, flush_mode mode) const {
  if (!stores_reach_the_file()) return;
  check_mark();
  if (mode == flush_mode::async) return start_writeback(range);
  parts_.for_each_piece(range, [&](const mapped_piece& found) {
    const auto pages = pages_of(found);
    if (::msync(pages.address, pages.bytes, MS_SYNC) == 0) return;
    throw_unwritten(found, errno);
  });
  check();  // msync reports nothing about pages that a fault or a truncation took away
}

std::size_t mapped_block::resident_bytes(byte_range range) const {
  constexpr std::size_t pages_max = std::size_t{1} << 16;
  std::vector<unsigned char> in_memory;
  std::size_t resident = 0;
  parts_.for_each_piece(range, [&](const mapped_piece& found) {
    const auto pages = pages_of(found);
    const std::size_t page = system_page_bytes();
    for (std::size_t offset = 0; offset < pages.bytes; offset += pages_max * page) {
      const std::size_t bytes = std::min(pages_max * page, pages.bytes - offset);
      in_memory.resize(bytes / page);
      if (::mincore(pages.address + offset, bytes, in_memory.data()) != 0) {
        if (errno == ENOMEM) throw_unmapped(found.file_offset);
        std::fill(in_memory.begin(), in_memory.end(), static_cast<unsigned char>(1));
      }
      resident += page * static_cast<std::size_t>(std::count_if(in_memory.begin(), in_memory.end(),
                                                                [](auto p) { return p & 1; }));
      // In the first and the last page, only the bytes that the range covers count.
      if (offset == 0 && (in_memory.front() & 1) != 0)
        resident -= static_cast<std::size_t>(found.address - pages.address);
      if (offset + bytes == pages.bytes && (in_memory.back() & 1) != 0)
        resident -=
            static_cast<std::size_t>((pages.address + pages.bytes) - (found.address + found.bytes));
    }
  });
  return resident;
}

}  // namespace shale::detail
