#include "storage/mapped/mapped_block.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/detail/interprocess_tester.hpp>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

#include "shale/error.hpp"
#include "shale/index.hpp"
#include "storage/blocks/heap_block.hpp"
#include "storage/files/file_space.hpp"
#include "storage/system/pages.hpp"

namespace shale::detail {

namespace {

namespace bip = boost::interprocess;

// Lets Boost.Interprocess map our own descriptor instead of opening a file by path.
class boost_descriptor {
 public:
  explicit boost_descriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  bip::mapping_handle_t get_mapping_handle() const noexcept {
    return bip::ipcdetail::mapping_handle_from_file_handle(descriptor_);
  }

 private:
  int descriptor_;
};

bip::mode_t boost_mode(access allowed) noexcept {
  switch (allowed) {
    case access::read_only:
      return bip::read_only;
    case access::read_write:
      return bip::read_write;
    case access::copy_on_write:
      break;
  }
  return bip::copy_on_write;
}

}  // namespace

mapped_block::mapped_block(mapping_source source, file_extent range, std::size_t capacity_bytes)
    : storage_block(source.kind, source.access),
      source_(std::move(source)),
      backing_(backing_of(source_.descriptor, source_.path)),
      made_for_(source_.access),
      extents_(false) {
  remember_write_back_errors();
  first_offset_ = range.offset;
  skew_ = static_cast<std::size_t>(range.offset % system_page_bytes());
  reserve(range.offset - skew_, range.bytes, capacity_bytes);
  extend({&range, 1});
}

mapped_block::mapped_block(mapping_source source, std::span<const file_extent> extents,
                           std::size_t capacity_bytes)
    : storage_block(source.kind, source.access),
      source_(std::move(source)),
      backing_(backing_of(source_.descriptor, source_.path)),
      made_for_(source_.access),
      extents_(true) {
  remember_write_back_errors();
  const auto first = std::find_if(extents.begin(), extents.end(),
                                  [](const auto& extent) { return extent.bytes > 0; });
  const std::uint64_t first_offset = first != extents.end() ? first->offset : 0;
  skew_ = static_cast<std::size_t>(first_offset % system_page_bytes());
  reserve(first_offset - skew_, total_bytes(extents), capacity_bytes);
  extend(extents);
}

void mapped_block::remember_write_back_errors() {
  if (stores_reach_the_file() && !source_.write_back)
    source_.write_back = write_back_record::of(source_.descriptor);
}

mapped_block::~mapped_block() {
  if (belongs_to_parent()) let_go_in_child();
  parts_.clear();  // from here on no handler touches the pages
  regions_.clear();
  // Some file systems report delayed write errors at close. Other users of the file must learn of
  // them.
  const int descriptor = source_.owned.release();
  // Pages that could not be written leave the cache. ext4 would take them for clean ones, with
  // blocks that are in use; what is stored into them later would be lost in spite of a sync.
  if (descriptor >= 0 && source_.write_back && source_.write_back->failed())
    (void)::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR && source_.write_back)
    source_.write_back->report({.error_number = errno});
}

// A forked child does not have the pages: it unmaps the memory that replaced them. If nothing
// replaced them, other memory may be mapped at their addresses, so nothing is unmapped.
void mapped_block::let_go_in_child() noexcept {
  for (auto& region : regions_)
    bip::ipcdetail::interprocess_tester::dont_close_on_destruction(region);
  for (auto& mapped : parts_) {
    const bool ours = mapped.guard.stands_in_for_parents();
    mapped.guard = {};
    if (ours)
      ::munmap(reserved_.address() + mapped.map_offset,
               align_up(mapped.bytes, system_page_bytes()));
  }
}

void mapped_block::reserve(std::uint64_t first_offset, std::size_t bytes,
                           std::size_t capacity_bytes) {
  const std::size_t capacity = std::max(bytes, capacity_bytes);
  const auto positions = checked_add(capacity, skew_);
  const auto pages = positions ? checked_align_up(*positions, system_page_bytes()) : std::nullopt;
  if (!pages)
    throw error(errc::out_of_memory, "no address space for a mapping",
                {fmt::format("file {}", source_.path), fmt::format("wanted {} bytes", capacity)});
  // If address and file offset are equal modulo the alignment, the kernel can map a large page of
  // the file by one large page of the processor.
  const std::size_t alignment = capacity >= huge_page_bytes ? huge_page_bytes : system_page_bytes();
  if (capacity > 0) {
    try {
      reserved_ = address_reservation(*pages, alignment, first_offset & (alignment - 1));
    } catch (error& failure) {
      failure.add_detail(fmt::format("file {}", source_.path));
      throw;
    }
  }
  place(capacity > 0 ? reserved_.address() + skew_ : nullptr, 0, capacity);
}

bool mapped_block::lie_on_pages(std::span<const file_extent> extents) noexcept {
  const std::size_t page = system_page_bytes();
  std::uint64_t position = 0;  // position in the map at which the next extent begins
  std::uint64_t next = 0;      // position in the file that would continue the extent before
  bool is_first = true;
  for (const auto& extent : extents) {
    if (extent.bytes == 0) continue;
    if (is_first) position = extent.offset % page;
    else if (extent.offset != next && (position % page != 0 || extent.offset % page != 0))
      return false;
    is_first = false;
    position += extent.bytes;
    next = extent.offset + extent.bytes;
  }
  return true;
}

// Maps `extents` after the present end. The size changes only after all of them are mapped.
void mapped_block::extend(std::span<const file_extent> extents) {
  const std::size_t parts_before = parts_.size();
  const std::size_t regions_before = regions_.size();
  const std::size_t last_before = parts_.empty() ? 0 : parts_.back().bytes;
  std::size_t bytes = size_bytes();
  try {
    for (const auto& extent : extents) {
      if (extent.bytes == 0) continue;
      add(extent);
      bytes += extent.bytes;
    }
  } catch (...) {
    take_back(parts_before, last_before, regions_before);
    throw;
  }
  set_size(bytes);
}

// Undoes the mappings of a failed `extend`. The addresses become reserved again in one step, so
// that no other mapping can be placed there in between.
void mapped_block::take_back(std::size_t parts, std::size_t last_bytes,
                             std::size_t regions) noexcept {
  const std::lock_guard lock(layout_);
  while (regions_.size() > regions) {
    auto& last = regions_.back();
    auto* const address = static_cast<std::byte*>(last.get_address());
    if (::mmap(address, last.get_size(), PROT_NONE,
               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      return;  // it stays mapped and guarded, outside of the storage's bounds
    bip::ipcdetail::interprocess_tester::dont_close_on_destruction(last);
    reserved_.claim(static_cast<std::size_t>(address - reserved_.address()));
    regions_.pop_back();
  }
  while (parts_.size() > parts) parts_.pop_back();
  if (parts_.empty()) return;
  parts_.back().bytes = last_bytes;
  parts_.back().guard.resize(align_up(last_bytes, system_page_bytes()));
}

// Adds one extent after the present parts. The first may begin inside a page (mapped.1).
void mapped_block::add(file_extent extent) {
  const std::lock_guard lock(layout_);
  const std::size_t page = system_page_bytes();
  const std::uint64_t first_offset = parts_.empty() ? extent.offset - skew_ : extent.offset;
  const std::size_t bytes = parts_.empty() ? extent.bytes + skew_ : extent.bytes;
  const std::size_t position = parts_.empty() ? 0 : parts_.back().map_offset + parts_.back().bytes;
  const bool continues =
      !parts_.empty() && parts_.back().file_offset + parts_.back().bytes == first_offset;
  if (!continues && (position % page != 0 || first_offset % page != 0))
    throw error(errc::invalid_argument, "extents that are mapped side by side must be whole pages",
                {place_in_file(first_offset),
                 fmt::format("it would lie at byte {} of the mapping; pages have {} bytes",
                             position, page)});
  const auto file_end = checked_add(extent.offset, static_cast<std::uint64_t>(extent.bytes));
  if (!file_end || *file_end > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    throw error(errc::invalid_argument, "the range reaches beyond the largest file",
                {place_in_file(extent.offset), fmt::format("{} bytes", extent.bytes)});

  // The page with the end of the previous part is mapped already.
  const std::size_t first_new = align_up(position, page);
  const std::size_t end = align_up(position + bytes, page);
  if (continues) {
    part& last = parts_.back();
    last.guard.resize(end - last.map_offset);
    try {
      if (end > first_new)
        map_pages(first_new, end - first_new, first_offset + (first_new - position));
    } catch (...) {
      last.guard.resize(first_new - last.map_offset);
      throw;
    }
    last.bytes += bytes;
  } else {
    part fresh;
    fresh.map_offset = position;
    fresh.bytes = bytes;
    fresh.file_offset = first_offset;
    fresh.guard = guarded_range({
        .address = reserved_.address() + position,
        .bytes = end - position,
        .file_offset = first_offset,
        .protection = protection(),
        .how = access() == access::read_write ? replacement::sink : replacement::zeros,
        .inherited_by_fork = inherited_by_fork(),
        .mark = &mark_,
    });
    parts_.push_back(std::move(fresh));
    try {
      map_pages(position, end - position, first_offset);
    } catch (...) {
      parts_.pop_back();
      throw;
    }
  }
  if (*file_end > needed_file_bytes_.load(std::memory_order_relaxed))
    needed_file_bytes_.store(*file_end, std::memory_order_relaxed);
}

void mapped_block::map_pages(std::size_t position, std::size_t bytes, std::uint64_t file_offset) {
  std::byte* const address = reserved_.address() + position;
  try {
    regions_.emplace_back(boost_descriptor(source_.descriptor), boost_mode(access()),
                          static_cast<bip::offset_t>(file_offset), bytes, address, MAP_FIXED);
  } catch (const bip::interprocess_exception& failure) {
    const int number = failure.get_native_error();
    errc code = code_for_errno(number);
    if (number == ENODEV) code = errc::unsupported;
    error told = error::from_errno(code, "the file could not be mapped", number,
                                   {place_in_file(file_offset), fmt::format("{} bytes", bytes)});
    if (code == errc::out_of_memory) told.add_detail(no_address_space_advice);
    throw told;
  }
  reserved_.claim(position + bytes);
  if (!inherited_by_fork()) ::madvise(address, bytes, MADV_DONTFORK);
  if (reserved_.bytes() >= huge_page_bytes) ::madvise(address, bytes, MADV_HUGEPAGE);
}

void mapped_block::grow(std::size_t from, std::size_t to) {
  const std::lock_guard lock(growing_);
  check_growth(*this, from, to);
  if (extents_)
    throw error(errc::invalid_argument, "the mapping of an array cannot grow",
                {fmt::format("file {}", source_.path),
                 "resize the array in a transaction, and map it again"});
  check_mark();
  const std::uint64_t wanted = first_offset_ + to;
  const std::uint64_t present = file_bytes(source_.descriptor, source_.path);
  if (wanted > present) {
    if (!stores_reach_the_file())
      throw error(
          errc::invalid_argument, "the file is too short for the storage to grow that far",
          {place_in_file(first_offset_),
           fmt::format("wanted {} bytes from there, the file ends at byte {}", to, present)});
    extend_file(source_.descriptor, present, wanted, source_.path);
  }
  // If this fails, the file stays longer, because others may already have stored into the new
  // bytes.
  const file_extent more{first_offset_ + from, to - from};
  extend({&more, 1});
}

void mapped_block::append(std::span<const file_extent> extents) {
  const std::lock_guard lock(growing_);
  check_growth(*this, size_bytes(), size_bytes() + total_bytes(extents));
  check_mark();
  extend(extents);
}

void mapped_block::make_read_only() {
  const std::lock_guard growing(growing_);
  const std::lock_guard lock(layout_);
  if (access() == access::read_only) return;
  set_access(access::read_only);
  for (auto& mapped : parts_) {
    mapped.guard.change(PROT_READ, replacement::zeros);
    if (::mprotect(reserved_.address() + mapped.map_offset,
                   align_up(mapped.bytes, system_page_bytes()), PROT_READ) != 0)
      throw error::from_errno(errno == ENOMEM ? errc::out_of_memory : errc::io,
                              "a mapping could not be made read-only", errno,
                              {place_in_file(mapped.file_offset)});
  }
}

void mapped_block::detach_from_file() noexcept {
  const std::lock_guard growing(growing_);
  const std::lock_guard lock(layout_);
  if (parts_.empty()) return;
  detached_.store(true, std::memory_order_relaxed);
  mark_.set(parts_.front().file_offset);
  if (belongs_to_parent()) return;
  for (auto& mapped : parts_) {
    std::byte* const address = reserved_.address() + mapped.map_offset;
    const std::size_t bytes = align_up(mapped.bytes, system_page_bytes());
    // This comes first, so that a fault that is being handled now leaves the same state.
    mapped.guard.change(protection(), replacement::zeros);
    if (::mmap(address, bytes, protection(),
               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      ::mprotect(address, bytes, PROT_READ);  // so that no store can reach the file
  }
}

bool mapped_block::belongs_to_parent() const noexcept {
  return !inherited_by_fork() && generation_ != fork_generation();
}

std::string mapped_block::place_in_file(std::uint64_t file_offset) const {
  return fmt::format("file {}, byte {}", source_.path, file_offset);
}

int mapped_block::protection() const noexcept {
  return access() == access::read_only ? PROT_READ : PROT_READ | PROT_WRITE;
}

void mapped_block::check_mark() const {
  if (belongs_to_parent())
    throw error(errc::unsupported, "a forked child does not inherit a writable mapping",
                {fmt::format("file {}", source_.path), "open it in the child"});
  if (mark_.failed.load(std::memory_order_acquire))
    throw_lost(mark_.file_offset.load(std::memory_order_relaxed));
  if (stores_were_lost()) source_.write_back->throw_error(source_.path);
}

void mapped_block::throw_lost(std::uint64_t offset) const {
  if (detached_.load(std::memory_order_relaxed))
    throw error(
        errc::io,
        "the bytes belong to no array: their transaction has ended without keeping them, or has "
        "removed the array",
        {fmt::format("file {}", source_.path)});
  throw error(errc::io, "mapped bytes were lost while they were in use",
              {place_in_file(offset),
               "the file was truncated, its device failed there, or the disk was full and the file "
               "system copies pages that are written",
               "loads from there on returned zeros, and stores were discarded"});
}

void mapped_block::throw_shorter(std::uint64_t offset, const std::string& sizes) const {
  throw error(errc::io, "the file has become shorter than its mapping",
              {place_in_file(offset), sizes, "another process truncated it while it was mapped"});
}

void mapped_block::check() const {
  check_mark();
  if (needed_file_bytes_.load(std::memory_order_relaxed) == 0) return;
  const std::uint64_t needed = needed_file_bytes_.load(std::memory_order_relaxed);
  const std::uint64_t present = file_bytes(source_.descriptor, source_.path);
  if (present < needed) throw_shorter(present, fmt::format("the mapping needs {} bytes", needed));
}

mapped_block* mapped_owner(const storage& handle) noexcept {
  return dynamic_cast<mapped_block*>(storage_block::of(handle));
}

}  // namespace shale::detail
