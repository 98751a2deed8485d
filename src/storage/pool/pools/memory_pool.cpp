#include "shale/memory_pool.hpp"

#include <fmt/format.h>

#include "core/allocating.hpp"
#include "shale/error.hpp"
#include "storage/pool/pools/pool_state.hpp"

namespace shale {

memory_pool::memory_pool(const pool_options& options)
    : state_(detail::allocating([&] { return std::make_unique<detail::pool_state>(options); })) {}

memory_pool::~memory_pool() = default;

memory_pool& memory_pool::default_pool() {
  // Never destroyed: storages in static objects may outlive all destructors of this library.
  static memory_pool& pool = *new memory_pool;
  return pool;
}

// Constructed at program start, so that no fork happens while another thread constructs it. Takes
// no memory but its own few bytes; without those the first use tries again.
[[maybe_unused]] static const bool made_at_load = [] {
  try {
    memory_pool::default_pool();
    return true;
  } catch (...) {
    return false;
  }
}();

pool_statistics memory_pool::statistics() const { return state_->statistics(); }
void memory_pool::reset_peak() noexcept { state_->reset_peak(); }
std::size_t memory_pool::trim() noexcept { return state_->trim(); }
bool memory_pool::all_clear() const noexcept { return state_->all_clear(); }
std::size_t memory_pool::limit_bytes() const noexcept { return state_->limit_bytes(); }
void memory_pool::set_limit_bytes(std::size_t bytes) noexcept { state_->set_limit_bytes(bytes); }

memory_pool::reservation memory_pool::reserve(std::size_t bytes) noexcept {
  return {*this, state_->reserve(bytes)};
}

memory_pool::reservation::~reservation() {
  if (pool_ != nullptr) pool_->state_->end_reservation(bytes_);
}

void* memory_pool::do_allocate(std::size_t bytes, std::size_t alignment) {
  return detail::allocating([&] { return state_->allocate(bytes, alignment); });
}

void memory_pool::do_deallocate(void* pointer, std::size_t bytes, std::size_t alignment) {
  state_->deallocate(pointer, bytes, alignment);
}

bool memory_pool::do_is_equal(const std::pmr::memory_resource& other) const noexcept {
  return this == &other;
}

void memory_pool::throw_too_many(std::size_t count, std::size_t item_bytes) {
  throw error(errc::out_of_memory, "the size of the array overflows",
              {fmt::format("wanted {} elements of {} bytes", count, item_bytes)});
}

}  // namespace shale
