// Owners of bytes without a file: blocks of a pool, and buffers of the caller.
#pragma once

#include <memory>

#include "shale/memory_pool.hpp"
#include "storage/blocks/storage_block.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::detail {

/// A block of a memory pool, given back when the last handle is destroyed.
class heap_block : public storage_block {
 public:
  /// Takes `capacity_bytes` from `pool`, of which `bytes` are in use.
  /// Throws   out_of_memory
  heap_block(std::size_t bytes, std::size_t capacity_bytes, memory_pool& pool,
             shale::access allowed = access::read_write);
  ~heap_block() override;

  void grow(std::size_t from, std::size_t to) override;

 private:
  memory_pool& pool_;
  fork_safe_mutex growing_;
};

/// Bytes that `owner` keeps alive, or the caller if `owner` is null.
class adopted_block final : public storage_block {
 public:
  adopted_block(void* address, std::size_t bytes, std::shared_ptr<void> owner,
                shale::access allowed) noexcept;

 private:
  const std::shared_ptr<void> owner_;
};

/// Throws   invalid_argument unless `from` is the present size and `to` is between it and the
///          capacity; every owner that grows makes these checks
void check_growth(const storage_block& block, std::size_t from, std::size_t to);

}  // namespace shale::detail
