#include "storage/pool/block_table.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace shale::detail {

namespace {

constexpr std::size_t slots_min = 64;

}  // namespace

// Twice as many slots; where there is no memory for them, a fuller table is slower, but right.
bool block_table::grow() noexcept {
  const std::size_t before = slots_ == nullptr ? 0 : last_ + 1;
  const std::size_t wanted = std::max(2 * before, slots_min);
  std::unique_ptr<slot[]> larger(new (std::nothrow) slot[wanted]);
  if (larger == nullptr) return count_ + 1 < before - before / 8;
  slots_.swap(larger);
  last_ = wanted - 1;
  shift_ = 64 - std::countr_zero(wanted);
  roomy_ = wanted / 2;
  for (std::size_t at = 0; at < before; ++at)
    if (larger[at].block != nullptr) place(larger[at]);
  return true;
}

}  // namespace shale::detail
