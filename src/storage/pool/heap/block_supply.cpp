#include "storage/pool/heap/block_supply.hpp"

#include <new>

namespace shale::detail {

block_supply::~block_supply() {
  while (slabs_ != nullptr) delete std::exchange(slabs_, slabs_->next);
}

bool block_supply::grow() noexcept {
  auto* const fresh = new (std::nothrow) slab;
  if (fresh == nullptr) return false;
  fresh->next = std::exchange(slabs_, fresh);
  for (pool_block& block : fresh->blocks) put(block);
  return true;
}

}  // namespace shale::detail
