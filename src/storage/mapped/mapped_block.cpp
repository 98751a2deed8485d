#include "storage/mapped/mapped_block.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "shale/error.hpp"
#include "storage/blocks/heap_block.hpp"
#include "storage/files/file_space.hpp"
#include "storage/system/pages.hpp"

namespace shale::detail {

namespace {

// The offset of the first mapped byte in the file; 0 if there is none.
std::uint64_t first_mapped_offset(std::span<const file_extent> extents) noexcept {
  const auto first = std::find_if(extents.begin(), extents.end(),
                                  [](const auto& extent) { return extent.bytes > 0; });
  return first != extents.end() ? first->offset : 0;
}

}  // namespace

mapped_block::mapped_block(mapping_source source, file_extent range, std::size_t capacity_bytes)
    : mapped_block(std::move(source), growth::by_bytes, {&range, 1}, capacity_bytes) {}

mapped_block::mapped_block(mapping_source source, std::span<const file_extent> extents,
                           std::size_t capacity_bytes)
    : mapped_block(std::move(source), growth::by_extents, extents, capacity_bytes) {}

mapped_block::mapped_block(mapping_source source, growth unit, std::span<const file_extent> extents,
                           std::size_t capacity_bytes)
    : storage_block(source.kind, source.access),
      source_(std::move(source)),
      backing_(backing_of(source_.descriptor, source_.path)),
      growth_(unit),
      first_offset_(unit == growth::by_bytes ? extents.front().offset
                                             : first_mapped_offset(extents)),
      parts_(source_, mark_, first_offset_, std::max(total_bytes(extents), capacity_bytes)) {
  remember_write_back_errors();
  place(parts_.data(), 0, std::max(total_bytes(extents), capacity_bytes));
  extend(extents);
}

void mapped_block::remember_write_back_errors() {
  if (stores_reach_the_file() && !source_.write_back)
    source_.write_back = write_back_record::of(source_.descriptor);
}

mapped_block::~mapped_block() {
  if (belongs_to_parent()) parts_.let_go_in_child();
  parts_.unmap();
  // Some file systems report delayed write errors at close. Other users of the file must learn of
  // them.
  const int descriptor = source_.owned.release();
  // Drops pages that could not be written from the page cache. ext4 would treat them as clean pages
  // whose blocks are in use, so later stores into them would be lost in spite of a sync.
  if (descriptor >= 0 && source_.write_back && source_.write_back->failed())
    (void)::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR && source_.write_back)
    source_.write_back->report({.error_number = errno});
}

// Maps `extents` after the present end. The size changes only after all of them are mapped.
void mapped_block::extend(std::span<const file_extent> extents) {
  parts_.extend(extents);
  set_size(size_bytes() + total_bytes(extents));
}

void mapped_block::require_growth(std::size_t from, std::size_t to) const {
  check_growth(*this, from, to);
  if (growth_ == growth::by_extents)
    throw error(errc::invalid_argument, "the mapping of an array cannot grow",
                {fmt::format("file {}", source_.path),
                 "resize the array in a transaction, and map it again"});
  check_mark();
}

// Makes the file long enough for a mapping of so many bytes. If the mapping fails later, the file
// stays longer, because others may already have stored into the new bytes.
void mapped_block::reserve_in_file(std::size_t bytes) const {
  const std::uint64_t wanted = first_offset_ + bytes;
  const std::uint64_t needed = parts_.needed_file_bytes();
  const auto own = size_of_own_file();
  if (!own)
    throw error(errc::io, "the descriptor of a mapping belongs to another file now, or to none",
                {source_.place(first_offset_),
                 "the program closed it: by close_range, closefrom or a wrong number"});
  const std::uint64_t present = *own;
  require_mapped_bytes(needed, present);
  if (wanted <= present) return;
  if (!stores_reach_the_file())
    throw error(
        errc::invalid_argument, "the file is too short for the storage to grow that far",
        {source_.place(first_offset_),
         fmt::format("wanted {} bytes from there, the file ends at byte {}", bytes, present)});
  extend_file(source_.descriptor, present, wanted, source_.path);
}

void mapped_block::grow(std::size_t from, std::size_t to) {
  {
    const std::lock_guard lock(changing_);
    require_growth(from, to);
  }
  // This may take long, for example if the file has to be filled with zeros. It runs without the
  // mutex, because `fork` waits for the thread that holds it. So another thread may grow the
  // storage meanwhile.
  reserve_in_file(to);
  const std::lock_guard lock(changing_);
  require_growth(from, to);
  const file_extent more{first_offset_ + from, to - from};
  if (from > 0 && access() == access::copy_on_write) refresh_last_page(more);
  extend({&more, 1});
}

// A store makes a page private. From then on it does not show bytes that others append to the file.
// The new bytes in the last mapped page are therefore read from the file. A descriptor that was
// opened with O_DIRECT reads only whole blocks, so the whole page is read, to an aligned address.
void mapped_block::refresh_last_page(const file_extent& more) const {
  const std::size_t page = system_page_bytes();
  const std::uint64_t page_begin = align_down(more.offset, page);
  const auto old_bytes = static_cast<std::size_t>(more.offset - page_begin);
  if (old_bytes == 0 || more.bytes == 0) return;
  const std::size_t count = std::min(more.bytes, page - old_bytes);
  std::vector<std::byte> room(2 * page);
  const auto start = reinterpret_cast<std::uintptr_t>(room.data());
  std::byte* const whole = room.data() + (align_up(start, page) - start);
  for (std::size_t done = 0; done < old_bytes + count;) {
    const ssize_t got = ::pread(source_.descriptor, whole + done, page - done,
                                static_cast<off_t>(page_begin + done));
    if (got < 0 && errno == EINTR) continue;
    const std::uint64_t missing = std::max(page_begin + done, more.offset);
    // With O_DIRECT, if a file ends inside a block, reading on from its end fails with EINVAL.
    if (got == 0 || (got < 0 && errno == EINVAL && done > 0))
      throw_shorter(missing, "its last page ends there");
    if (got < 0)
      throw error::from_errno(errc::io, "the file could not be read", errno,
                              {source_.place(missing)});
    done += static_cast<std::size_t>(got);
  }
  std::byte* const mapped = address() + (more.offset - first_offset_);
  if (std::memcmp(mapped, whole + old_bytes, count) != 0)
    std::memcpy(mapped, whole + old_bytes, count);
}

void mapped_block::append(std::span<const file_extent> extents) {
  const std::lock_guard lock(changing_);
  check_growth(*this, size_bytes(), size_bytes() + total_bytes(extents));
  check_mark();
  extend(extents);
}

void mapped_block::make_read_only() {
  const std::lock_guard lock(changing_);
  if (access() == access::read_only) return;
  set_access(access::read_only);
  parts_.make_read_only();
}

void mapped_block::let_children_inherit() noexcept {
  const std::lock_guard lock(changing_);
  if (access() == access::read_only && !belongs_to_parent()) parts_.let_children_inherit();
}

void mapped_block::detach_from_file() noexcept {
  const std::lock_guard lock(changing_);
  const auto first = parts_.file_offset(0);
  if (!first) return;
  detached_.store(true, std::memory_order_relaxed);
  mark_.set(*first);
  if (!belongs_to_parent()) parts_.replace_by_zeros();
}

bool mapped_block::belongs_to_parent() const noexcept {
  return !parts_.inherited_by_fork() && !mapped_by_.is_this_one();
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
              {source_.place(offset),
               "the file was truncated, its device failed there, or the disk was full and the file "
               "system copies pages that are written",
               "loads from there on returned zeros, and stores were discarded"});
}

void mapped_block::throw_unmapped(std::uint64_t offset) const {
  throw error(errc::unsupported, "a mapping is not there",
              {source_.place(offset),
               "a child process that was made without the handlers of fork does not inherit it: "
               "open the file in the child"});
}

void mapped_block::throw_shorter(std::uint64_t offset, const std::string& sizes) const {
  throw error(errc::io, "the file has become shorter than its mapping",
              {source_.place(offset), sizes, "another process truncated it while it was mapped"});
}

// The system reports an error once, so the record keeps it.
void mapped_block::ask_for_write_back_errors() const {
  const int failure = unreported_write_back_error(source_.descriptor);
  if (failure == 0) return;
  source_.write_back->report({.error_number = failure});
  source_.write_back->throw_error(source_.path);
}

void mapped_block::check() const {
  check_mark();
  if (source_.asks_for_write_back_errors) ask_for_write_back_errors();
  // What is needed is asked first: another thread may grow the file and the mapping in between.
  const std::uint64_t needed = parts_.needed_file_bytes();
  if (needed == 0) return;
  const std::uint64_t present = file_bytes(source_.descriptor, source_.path);
  if (size_of_own_file()) require_mapped_bytes(needed, present);
}

void mapped_block::require_mapped_bytes(std::uint64_t needed, std::uint64_t present) const {
  if (present < needed) throw_shorter(present, fmt::format("the mapping needs {} bytes", needed));
}

mapped_block* mapped_owner(const storage& handle) noexcept {
  return dynamic_cast<mapped_block*>(storage_block::of(handle));
}

}  // namespace shale::detail
