#include "storage/pool/heap/block_table.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace shale::detail {

namespace {

constexpr std::size_t slots_min = 64;

}  // namespace

// Doubles the number of slots. If there is no memory for that, the present table is filled up to
// seven eighths: it is slower then, but correct.
bool block_table::grow() noexcept {
  const std::size_t before = slots_ == nullptr ? 0 : last_ + 1;
  const std::size_t wanted = std::max(2 * before, slots_min);
  std::unique_ptr<slot[]> larger(new (std::nothrow) slot[wanted]);
  if (larger == nullptr) return count_ + 1 < before - before / 8;
  slots_.swap(larger);
  last_ = wanted - 1;
  shift_ = 64 - std::countr_zero(wanted);
  roomy_ = wanted / 2;
  for (std::size_t i = 0; i < before; ++i)
    if (larger[i].block != nullptr) place(larger[i]);
  return true;
}

}  // namespace shale::detail
