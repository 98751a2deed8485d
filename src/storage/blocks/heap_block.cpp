#include "storage/blocks/heap_block.hpp"

#include <fmt/format.h>

#include <utility>

namespace shale::detail {

namespace {
constexpr std::size_t heap_alignment = 64;
}

heap_block::heap_block(std::size_t bytes, std::size_t capacity_bytes, memory_pool& pool,
                       shale::access allowed)
    : storage_block(storage_kind::heap, allowed), pool_(pool) {
  auto* const address =
      capacity_bytes == 0 ? nullptr : pool.allocate(capacity_bytes, heap_alignment);
  place(static_cast<std::byte*>(address), bytes, capacity_bytes);
}

heap_block::~heap_block() {
  if (address() != nullptr) pool_.deallocate(address(), capacity_bytes(), heap_alignment);
}

void heap_block::grow(std::size_t from, std::size_t to) {
  const std::lock_guard lock(growing_);
  check_growth(*this, from, to);
  set_size(to);
}

adopted_block::adopted_block(void* address, std::size_t bytes, std::shared_ptr<void> owner,
                             shale::access allowed) noexcept
    : storage_block(storage_kind::adopted, allowed), owner_(std::move(owner)) {
  place(static_cast<std::byte*>(address), bytes, bytes);
}

void check_growth(const storage_block& block, std::size_t from, std::size_t to) {
  if (from != block.size_bytes())
    throw error(errc::invalid_argument, "this handle does not reach the end of its storage",
                {fmt::format("the handle ends at byte {}, the storage at byte {}", from,
                             block.size_bytes()),
                 "grow through a handle that reaches the end"});
  if (to < from)
    throw error(errc::invalid_argument, "a storage cannot shrink",
                {fmt::format("it has {} bytes, got {}", from, to), "take a slice instead"});
  if (to > block.capacity_bytes())
    throw error(errc::invalid_argument, "the storage cannot grow that far",
                {fmt::format("wanted {} bytes, reserved {}", to, block.capacity_bytes()),
                 "ask for more reserve_bytes when making it"});
}

}  // namespace shale::detail
