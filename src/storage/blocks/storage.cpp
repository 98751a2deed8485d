#include "shale/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "shale/memory_pool.hpp"
#include "storage/blocks/heap_block.hpp"
#include "storage/blocks/segment_checksums.hpp"
#include "storage/blocks/storage_block.hpp"

namespace shale {

namespace {

[[noreturn]] void throw_null(std::size_t bytes) {
  throw error(errc::invalid_argument, "a null pointer cannot be adopted as bytes",
              {fmt::format("got null and {} bytes", bytes)});
}

}  // namespace

storage::storage(storage&& other) noexcept
    : block_(std::move(other.block_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      read_only_(std::exchange(other.read_only_, false)) {}

storage& storage::operator=(storage&& other) noexcept {
  storage moved(std::move(other));
  std::swap(block_, moved.block_);
  std::swap(data_, moved.data_);
  std::swap(bytes_, moved.bytes_);
  std::swap(read_only_, moved.read_only_);
  return *this;
}

storage storage::allocate(std::size_t bytes, memory_pool* pool, std::size_t reserve_bytes) {
  return detail::allocating([&] {
    return detail::storage_block::handle(std::make_shared<detail::heap_block>(
        bytes, std::max(bytes, reserve_bytes),
        pool != nullptr ? *pool : memory_pool::default_pool()));
  });
}

storage storage::adopt_owner(void* pointer, std::size_t bytes, std::shared_ptr<void> owner,
                             shale::access allowed) {
  require_adoptable(pointer, bytes, allowed);
  return detail::allocating([&] {
    return detail::storage_block::handle(
        std::make_shared<detail::adopted_block>(pointer, bytes, std::move(owner), allowed));
  });
}

void storage::require_adoptable(const void* pointer, std::size_t bytes, shale::access allowed) {
  detail::require_enumerator(allowed, shale::access::copy_on_write, "access");
  if (pointer == nullptr && bytes > 0) throw_null(bytes);
}

storage storage::slice(std::size_t offset, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset)
    throw error(
        errc::invalid_argument, "the slice reaches beyond its storage",
        {fmt::format("got {} bytes from byte {} on, the storage has {}", bytes, offset, bytes_)});
  storage part = *this;
  part.data_ = data_ == nullptr ? nullptr : data_ + offset;
  part.bytes_ = bytes;
  return part;
}

storage storage::as_read_only() const {
  storage same = *this;
  same.read_only_ = true;
  return same;
}

storage_kind storage::kind() const noexcept { return block_ ? block_->kind() : storage_kind::heap; }

access storage::access() const noexcept {
  if (read_only_) return shale::access::read_only;
  return block_ ? block_->access() : shale::access::read_write;
}

std::size_t storage::owner_offset() const noexcept {
  return data_ == nullptr ? 0 : static_cast<std::size_t>(data_ - block_->address());
}

std::uint64_t storage::version() const noexcept { return block_ ? block_->version() : 0; }

void storage::bump_version() const noexcept {
  if (block_) block_->bump_version();
}

void storage::grow(std::size_t bytes) {
  if (bytes == bytes_) return;
  if (!block_)
    throw error(errc::invalid_argument, "a storage without an owner cannot grow",
                {"make one with storage::allocate, map_file or create_file"});
  // If the owner is read-only, a read-only handle may grow it: this maps bytes that others have
  // appended. If the owner is writable, growing it may extend the file.
  if (read_only_ && block_->access() != shale::access::read_only)
    throw error(errc::access_denied, "a read-only handle cannot grow its storage",
                {"grow through a handle that may write"});
  block_->grow(owner_offset() + bytes_, owner_offset() + bytes);
  bytes_ = bytes;
}

std::size_t storage::capacity_bytes() const noexcept {
  if (!block_) return 0;
  const bool reaches_end = owner_offset() + bytes_ == block_->size_bytes();
  return reaches_end ? block_->capacity_bytes() - owner_offset() : bytes_;
}

std::string_view storage::path() const noexcept {
  return block_ ? block_->path() : std::string_view();
}

std::optional<std::uint64_t> storage::file_offset() const noexcept {
  return block_ ? block_->file_offset(owner_offset()) : std::nullopt;
}

byte_range storage::in_owner(byte_range range) const noexcept {
  const std::size_t first = std::min(range.offset, bytes_);
  return {owner_offset() + first, std::min(range.bytes, bytes_ - first)};
}

void storage::advise(access_pattern pattern, byte_range range) const noexcept {
  if (const auto part = in_owner(range); part.bytes > 0) block_->advise(pattern, part);
}

void storage::prefetch(byte_range range) const noexcept {
  if (const auto part = in_owner(range); part.bytes > 0) block_->prefetch(part);
}

void storage::populate(byte_range range, populate_for use) const {
  detail::require_enumerator(use, populate_for::store, "populate_for");
  if (use == populate_for::store && !writable())
    throw error(errc::access_denied, "a read-only storage cannot be populated for stores");
  if (const auto part = in_owner(range); part.bytes > 0) block_->populate(part, use);
}

void storage::evict(byte_range range, eviction scope) const noexcept {
  if (const auto part = in_owner(range); part.bytes > 0) block_->evict(part, scope);
}

void storage::start_writeback(byte_range range) const noexcept {
  if (const auto part = in_owner(range); part.bytes > 0) block_->start_writeback(part);
}

void storage::finish_writeback(byte_range range) const {
  if (const auto part = in_owner(range); part.bytes > 0) block_->finish_writeback(part);
}

void storage::flush(byte_range range, flush_mode mode) const {
  detail::require_enumerator(mode, flush_mode::async, "flush_mode");
  if (const auto part = in_owner(range); part.bytes > 0) block_->flush(part, mode);
}

bool storage::has_checksums() const noexcept { return block_ && block_->checksums() != nullptr; }

void storage::compare_checksums(byte_range range) const {
  if (!has_checksums()) return;
  if (const auto part = in_owner(range); part.bytes > 0) block_->checksums()->compare(part);
}

std::size_t storage::resident_bytes(byte_range range) const {
  const auto part = in_owner(range);
  return part.bytes > 0 ? block_->resident_bytes(part) : 0;
}

bool storage::failed() const noexcept { return block_ && block_->failed(); }

void storage::check() const {
  if (block_) block_->check();
}

}  // namespace shale
