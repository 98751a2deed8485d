#include "storage/blocks/backing.hpp"

#include <fmt/format.h>

#include "shale/error.hpp"
#include "storage/blocks/storage_block.hpp"
#include "storage/system/file_facts.hpp"

namespace shale::detail {

backing_file backing_of(int descriptor, std::string_view path) {
  file_facts facts;
  if (const int failed = facts_of(descriptor, facts))
    throw error::from_errno(errc::io, "the file could not be identified", failed,
                            {fmt::format("file {}", path)});
  return {facts.device, facts.inode};
}

bool stores_show(const storage& written, const storage& other) noexcept {
  const storage_block* const to = storage_block::of(written);
  const storage_block* const block = storage_block::of(other);
  if (to == block || to == nullptr || block == nullptr) return false;
  const backing_file* const stored = to->backing();
  const backing_file* const shown = block->backing();
  return stored != nullptr && shown != nullptr && *stored == *shown &&
         to->access() == access::read_write;
}

file_extent extent_at(const storage& mapped, std::size_t offset) noexcept {
  return storage_block::of(mapped)->extent_at(mapped.owner_offset() + offset);
}

bool read_file(const storage& bytes, std::size_t offset, std::span<std::byte> into) noexcept {
  const storage_block* const block = storage_block::of(bytes);
  return block != nullptr && block->read_file(bytes.owner_offset() + offset, into);
}

bool write_file(const storage& bytes, std::size_t offset, std::span<const std::byte> from) {
  storage_block* const block = storage_block::of(bytes);
  return block != nullptr && block->write_file(bytes.owner_offset() + offset, from);
}

}  // namespace shale::detail
