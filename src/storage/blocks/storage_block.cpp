#include "storage/blocks/storage_block.hpp"

#include <utility>

namespace shale::detail {

void storage_block::grow(std::size_t, std::size_t) {
  throw error(errc::invalid_argument, "this storage cannot grow",
              {"it was made without reserve_bytes, or over bytes that somebody else owns"});
}

storage storage_block::handle(std::shared_ptr<storage_block> block) noexcept {
  std::byte* const address = block->address();
  const std::size_t bytes = block->size_bytes();
  return storage(std::move(block), address, bytes);
}

void storage_block::reach_end(storage& handle) noexcept {
  handle.bytes_ = handle.block_->size_bytes() - handle.owner_offset();
}

}  // namespace shale::detail
