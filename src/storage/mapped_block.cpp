#include "storage/mapped_block.hpp"

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
#include "storage/file_space.hpp"
#include "storage/heap_block.hpp"
#include "storage/pages.hpp"

namespace shale::detail {

namespace {

namespace bip = boost::interprocess;

// What Boost.Interprocess maps: our own descriptor, as it is.
class open_file {
 public:
  explicit open_file(int descriptor) noexcept : descriptor_(descriptor) {}
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

std::size_t total_bytes(std::span<const file_extent> extents) {
  std::size_t total = 0;
  for (const auto& each : extents) {
    const auto sum = checked_add(total, each.bytes);
    if (!sum) throw error(errc::out_of_memory, "the extents overflow the address space");
    total = *sum;
  }
  return total;
}

}  // namespace

mapped_block::mapped_block(mapping_source source, file_extent stretch, std::size_t capacity_bytes)
    : storage_block(source.kind, source.access),
      source_(std::move(source)),
      made_for_(source_.access),
      extents_(false) {
  first_offset_ = stretch.offset;
  skew_ = static_cast<std::size_t>(stretch.offset % page_bytes());
  reserve(stretch.offset - skew_, stretch.bytes, capacity_bytes);
  extend({&stretch, 1});
}

mapped_block::mapped_block(mapping_source source, std::span<const file_extent> extents,
                           std::size_t capacity_bytes)
    : storage_block(source.kind, source.access),
      source_(std::move(source)),
      made_for_(source_.access),
      extents_(true) {
  reserve(extents.empty() ? 0 : extents.front().offset, total_bytes(extents), capacity_bytes);
  extend(extents);
}

mapped_block::~mapped_block() {
  parts_.clear();  // no handler looks at the pages from here on
  if (belongs_to_parent())
    // This process has never had the pages; by now something else may lie at their addresses.
    for (auto& each : regions_)
      bip::ipcdetail::interprocess_tester::dont_close_on_destruction(each);
}

void mapped_block::reserve(std::uint64_t first_offset, std::size_t bytes,
                           std::size_t capacity_bytes) {
  const std::size_t capacity = std::max(bytes, capacity_bytes);
  const auto positions = checked_add(capacity, skew_);
  const auto pages = positions ? checked_align_up(*positions, page_bytes()) : std::nullopt;
  if (!pages)
    throw error(errc::out_of_memory, "no address space for a mapping",
                {fmt::format("file {}", source_.path), fmt::format("wanted {} bytes", capacity)});
  // Equal remainders let the kernel put one large page of the file under one of the processor's.
  const std::size_t alignment = capacity >= huge_page_bytes ? huge_page_bytes : page_bytes();
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

// Maps `extents` behind what is mapped: the size is theirs once all of them are.
void mapped_block::extend(std::span<const file_extent> extents) {
  const std::size_t parts_before = parts_.size();
  const std::size_t regions_before = regions_.size();
  const std::size_t last_before = parts_.empty() ? 0 : parts_.back().bytes;
  std::size_t bytes = size_bytes();
  try {
    for (const auto& each : extents) {
      if (each.bytes == 0) continue;
      add(each);
      bytes += each.bytes;
    }
  } catch (...) {
    take_back(parts_before, last_before, regions_before);
    throw;
  }
  set_size(bytes);
}

// Undoes what `extend` had mapped when it failed. The addresses become reserved again in one step:
// at no time could somebody else's mapping be placed there.
void mapped_block::take_back(std::size_t parts, std::size_t last_bytes,
                             std::size_t regions) noexcept {
  const std::lock_guard lock(layout_);
  while (regions_.size() > regions) {
    auto& last = regions_.back();
    auto* const address = static_cast<std::byte*>(last.get_address());
    if (::mmap(address, last.get_size(), PROT_NONE,
               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      return;  // stays mapped and guarded, and in nobody's bounds
    bip::ipcdetail::interprocess_tester::dont_close_on_destruction(last);
    reserved_.claim(static_cast<std::size_t>(address - reserved_.address()));
    regions_.pop_back();
  }
  while (parts_.size() > parts) parts_.pop_back();
  if (parts_.empty()) return;
  parts_.back().bytes = last_bytes;
  parts_.back().guard.resize(align_up(last_bytes, page_bytes()));
}

// One extent behind the parts that are there. The first may begin inside a page (mapped.1).
void mapped_block::add(file_extent extent) {
  const std::lock_guard lock(layout_);
  const std::size_t page = page_bytes();
  const std::uint64_t first_offset = parts_.empty() ? extent.offset - skew_ : extent.offset;
  const std::size_t bytes = parts_.empty() ? extent.bytes + skew_ : extent.bytes;
  const std::size_t at = parts_.empty() ? 0 : parts_.back().at + parts_.back().bytes;
  const bool continues =
      !parts_.empty() && parts_.back().file_offset + parts_.back().bytes == first_offset;
  if (!continues && (at % page != 0 || first_offset % page != 0))
    throw error(
        errc::invalid_argument, "extents side by side must be whole pages",
        {place_in_file(first_offset),
         fmt::format("it would lie at byte {} of the mapping; pages have {} bytes", at, page)});
  const auto file_end = checked_add(extent.offset, static_cast<std::uint64_t>(extent.bytes));
  if (!file_end || *file_end > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    throw error(errc::invalid_argument, "the range reaches beyond what a file can hold",
                {place_in_file(extent.offset), fmt::format("{} bytes", extent.bytes)});

  // Pages that hold the end of the part before are mapped already.
  const std::size_t first_new = align_up(at, page);
  const std::size_t end = align_up(at + bytes, page);
  if (continues) {
    part& last = parts_.back();
    last.guard.resize(end - last.at);
    try {
      if (end > first_new) map_pages(first_new, end - first_new, first_offset + (first_new - at));
    } catch (...) {
      last.guard.resize(first_new - last.at);
      throw;
    }
    last.bytes += bytes;
  } else {
    part fresh;
    fresh.at = at;
    fresh.bytes = bytes;
    fresh.file_offset = first_offset;
    fresh.guard = guarded_range({
        .address = reserved_.address() + at,
        .bytes = end - at,
        .file_offset = first_offset,
        .protection = protection(),
        .how = access() == access::read_write ? replacement::sink : replacement::zeros,
        .inherited_by_fork = inherited_by_fork(),
        .mark = &mark_,
    });
    parts_.push_back(std::move(fresh));
    try {
      map_pages(at, end - at, first_offset);
    } catch (...) {
      parts_.pop_back();
      throw;
    }
  }
  if (*file_end > needed_file_bytes_.load(std::memory_order_relaxed))
    needed_file_bytes_.store(*file_end, std::memory_order_relaxed);
}

void mapped_block::map_pages(std::size_t at, std::size_t bytes, std::uint64_t file_offset) {
  std::byte* const address = reserved_.address() + at;
  try {
    regions_.emplace_back(open_file(source_.descriptor), boost_mode(access()),
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
  reserved_.claim(at + bytes);
  if (!inherited_by_fork()) ::madvise(address, bytes, MADV_DONTFORK);
  if (reserved_.bytes() >= huge_page_bytes) ::madvise(address, bytes, MADV_HUGEPAGE);
}

void mapped_block::grow(std::size_t from, std::size_t to) {
  const std::lock_guard lock(growing_);
  check_growth(*this, from, to);
  if (extents_)
    throw error(errc::invalid_argument, "an array's mapping does not grow by itself",
                {fmt::format("file {}", source_.path), "append to the array instead"});
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
  // Should this fail, the file stays longer: another may have stored into what it gained.
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
  for (auto& each : parts_) {
    each.guard.change(PROT_READ, replacement::zeros);
    if (::mprotect(reserved_.address() + each.at, align_up(each.bytes, page_bytes()), PROT_READ) !=
        0)
      throw error::from_errno(errno == ENOMEM ? errc::out_of_memory : errc::io,
                              "a mapping could not be made read-only", errno,
                              {place_in_file(each.file_offset)});
  }
}

void mapped_block::abandon() noexcept {
  const std::lock_guard growing(growing_);
  const std::lock_guard lock(layout_);
  if (parts_.empty()) return;
  abandoned_.store(true, std::memory_order_relaxed);
  mark_.set(parts_.front().file_offset);
  if (belongs_to_parent()) return;
  for (auto& each : parts_) {
    std::byte* const address = reserved_.address() + each.at;
    const std::size_t bytes = align_up(each.bytes, page_bytes());
    // First, so that a fault under way leaves the same.
    each.guard.change(protection(), replacement::zeros);
    if (::mmap(address, bytes, protection(),
               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      ::mprotect(address, bytes, PROT_READ);  // no store may reach the file any more
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
    throw error(errc::unsupported, "a forked child has no share in a writable mapping",
                {fmt::format("file {}", source_.path), "open it in the child"});
  if (failed()) throw_lost(mark_.file_offset.load(std::memory_order_relaxed));
}

void mapped_block::throw_lost(std::uint64_t at) const {
  if (abandoned_.load(std::memory_order_relaxed))
    throw error(errc::io, "the bytes were given up by whoever was writing them",
                {fmt::format("file {}", source_.path)});
  throw error(errc::io, "mapped bytes were lost while they were in use",
              {place_in_file(at), "the file was truncated, or its device failed there",
               "what was read from there on is zeros, what was stored is gone"});
}

void mapped_block::check() const {
  check_mark();
  if (needed_file_bytes_.load(std::memory_order_relaxed) == 0) return;
  const std::uint64_t needed = needed_file_bytes_.load(std::memory_order_relaxed);
  const std::uint64_t present = file_bytes(source_.descriptor, source_.path);
  if (present < needed)
    throw error(errc::io, "the file has become shorter than its mapping",
                {place_in_file(present), fmt::format("the mapping needs {} bytes", needed),
                 "another process truncated it while it was mapped"});
}

mapped_block* mapped_owner(const storage& handle) noexcept {
  return dynamic_cast<mapped_block*>(storage_block::of(handle));
}

}  // namespace shale::detail
