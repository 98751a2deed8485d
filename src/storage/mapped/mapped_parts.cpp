#include "storage/mapped/mapped_parts.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <boost/interprocess/detail/interprocess_tester.hpp>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

#include "shale/error.hpp"
#include "shale/index.hpp"
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

std::string mapping_source::place(std::uint64_t file_offset) const {
  return fmt::format("file {}, byte {}", path, file_offset);
}

mapped_parts::mapped_parts(const mapping_source& source, fault_mark& mark,
                           std::uint64_t first_offset, std::size_t capacity_bytes)
    : source_(source),
      mark_(mark),
      access_(source.access),
      inherited_(source.inherited_by_fork()),
      skew_(static_cast<std::size_t>(first_offset % system_page_bytes())) {
  if (capacity_bytes > 0) reserve(first_offset - skew_, capacity_bytes);
}

void mapped_parts::reserve(std::uint64_t first_offset, std::size_t capacity) {
  const auto positions = checked_add(capacity, skew_);
  const auto pages = positions ? checked_align_up(*positions, system_page_bytes()) : std::nullopt;
  if (!pages)
    throw error(errc::out_of_memory, "no address space for a mapping",
                {fmt::format("file {}", source_.path), fmt::format("wanted {} bytes", capacity)});
  // If address and file offset are equal modulo the alignment, the kernel can map a large page of
  // the file by one large page of the processor.
  const std::size_t alignment = capacity >= huge_page_bytes ? huge_page_bytes : system_page_bytes();
  try {
    reserved_ = address_reservation(*pages, alignment, first_offset & (alignment - 1));
  } catch (error& failure) {
    failure.add_detail(fmt::format("file {}", source_.path));
    throw;
  }
}

bool mapped_parts::lie_on_pages(std::span<const file_extent> extents) noexcept {
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

void mapped_parts::extend(std::span<const file_extent> extents) {
  const std::size_t parts_before = parts_.size();
  const std::size_t regions_before = regions_.size();
  const std::size_t last_before = parts_.empty() ? 0 : parts_.back().bytes;
  try {
    for (const auto& extent : extents)
      if (extent.bytes > 0) add(extent);
  } catch (...) {
    take_back(parts_before, last_before, regions_before);
    throw;
  }
}

// Undoes the mappings of a failed `extend`. The addresses become reserved again in one step, so
// that no other mapping can be placed there in between.
void mapped_parts::take_back(std::size_t parts, std::size_t last_bytes,
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
void mapped_parts::add(file_extent extent) {
  const std::lock_guard lock(layout_);
  const std::size_t page = system_page_bytes();
  const std::uint64_t first_offset = parts_.empty() ? extent.offset - skew_ : extent.offset;
  const std::size_t bytes = parts_.empty() ? extent.bytes + skew_ : extent.bytes;
  const std::size_t position = parts_.empty() ? 0 : parts_.back().map_offset + parts_.back().bytes;
  const bool continues =
      !parts_.empty() && parts_.back().file_offset + parts_.back().bytes == first_offset;
  if (!continues && (position % page != 0 || first_offset % page != 0))
    throw error(errc::invalid_argument, "extents that are mapped side by side must be whole pages",
                {source_.place(first_offset),
                 fmt::format("it would lie at byte {} of the mapping; pages have {} bytes",
                             position, page)});
  const auto file_end = checked_add(extent.offset, static_cast<std::uint64_t>(extent.bytes));
  if (!file_end || *file_end > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    throw error(errc::invalid_argument, "the range reaches beyond the largest file",
                {source_.place(extent.offset), fmt::format("{} bytes", extent.bytes)});

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
        .kind = access_ == access::read_write ? replacement::sink : replacement::zeros,
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

void mapped_parts::map_pages(std::size_t position, std::size_t bytes, std::uint64_t file_offset) {
  std::byte* const address = reserved_.address() + position;
  try {
    regions_.emplace_back(boost_descriptor(source_.descriptor), boost_mode(access_),
                          static_cast<bip::offset_t>(file_offset), bytes, address, MAP_FIXED);
  } catch (const bip::interprocess_exception& failure) {
    const int number = failure.get_native_error();
    errc code = code_for_errno(number);
    if (number == ENODEV) code = errc::unsupported;
    error refused = error::from_errno(code, "the file could not be mapped", number,
                                      {source_.place(file_offset), fmt::format("{} bytes", bytes)});
    if (code == errc::out_of_memory) refused.add_detail(no_address_space_advice);
    throw refused;
  }
  reserved_.claim(position + bytes);
  if (!inherited_by_fork()) ::madvise(address, bytes, MADV_DONTFORK);
  if (reserved_.bytes() >= huge_page_bytes) ::madvise(address, bytes, MADV_HUGEPAGE);
}

void mapped_parts::make_read_only() {
  const std::lock_guard lock(layout_);
  access_ = access::read_only;
  for (auto& mapped : parts_) {
    mapped.guard.change(PROT_READ, replacement::zeros);
    if (::mprotect(reserved_.address() + mapped.map_offset,
                   align_up(mapped.bytes, system_page_bytes()), PROT_READ) != 0)
      throw error::from_errno(errno == ENOMEM ? errc::out_of_memory : errc::io,
                              "a mapping could not be made read-only", errno,
                              {source_.place(mapped.file_offset)});
  }
}

// Inheritance holds for the whole mapping: a child inherits all parts, or all of them count as
// lost.
void mapped_parts::let_children_inherit() noexcept {
  const std::lock_guard lock(layout_);
  for (const auto& mapped : parts_)
    if (::madvise(reserved_.address() + mapped.map_offset,
                  align_up(mapped.bytes, system_page_bytes()), MADV_DOFORK) != 0)
      return;
  for (auto& mapped : parts_) mapped.guard.let_children_inherit();
  inherited_.store(true, std::memory_order_relaxed);
}

void mapped_parts::replace_by_zeros() noexcept {
  const std::lock_guard lock(layout_);
  for (auto& mapped : parts_) {
    std::byte* const address = reserved_.address() + mapped.map_offset;
    const std::size_t bytes = align_up(mapped.bytes, system_page_bytes());
    // This comes first, so that a fault that is being handled now leaves the same state.
    mapped.guard.change(protection(), replacement::zeros);
    if (::mmap(address, bytes, protection(),
               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
      mapped.guard.note_replaced();
    else ::mprotect(address, bytes, PROT_READ);  // so that no store can reach the file
  }
}

void mapped_parts::unmap() noexcept {
  parts_.clear();  // from here on no handler touches the pages
  regions_.clear();
}

void mapped_parts::let_go_in_child() noexcept {
  for (auto& region : regions_)
    bip::ipcdetail::interprocess_tester::dont_close_on_destruction(region);
  for (auto& mapped : parts_) {
    const bool replaced = mapped.guard.stands_in_for_parents();
    mapped.guard = {};
    if (replaced)
      ::munmap(reserved_.address() + mapped.map_offset,
               align_up(mapped.bytes, system_page_bytes()));
  }
}

int mapped_parts::protection() const noexcept {
  return access_ == access::read_only ? PROT_READ : PROT_READ | PROT_WRITE;
}

// ---- positions ----------------------------------------------------------------------------------

// The part that contains this position of the map, or the last part. The caller holds layout_;
// parts_ is not empty.
const mapped_parts::part& mapped_parts::part_at(std::size_t map_position) const noexcept {
  const auto after = std::upper_bound(
      parts_.begin() + 1, parts_.end(), map_position,
      [](std::size_t position, const part& mapped) { return position < mapped.map_offset; });
  return *(after - 1);
}

// The bytes from `map_position` up to `last`, but at most to the end of the part.
mapped_piece mapped_parts::piece_at(std::size_t map_position, std::size_t last) const noexcept {
  const std::lock_guard lock(layout_);
  const part& in = part_at(map_position);
  return {reserved_.address() + map_position,
          std::min(last, in.map_offset + in.bytes) - map_position,
          in.file_offset + (map_position - in.map_offset)};
}

std::optional<std::uint64_t> mapped_parts::file_offset(std::size_t offset) const noexcept {
  const std::lock_guard lock(layout_);
  if (parts_.empty()) return std::nullopt;
  const part& in = part_at(skew_ + offset);
  return in.file_offset + (skew_ + offset - in.map_offset);
}

file_extent mapped_parts::extent_at(std::size_t offset) const noexcept {
  const std::lock_guard lock(layout_);
  const part& in = part_at(skew_ + offset);
  const std::size_t inside = skew_ + offset - in.map_offset;
  return {in.file_offset + inside, in.bytes - inside};
}

}  // namespace shale::detail
