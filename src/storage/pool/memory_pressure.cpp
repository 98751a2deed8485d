#include "storage/pool/memory_pressure.hpp"

#include <utility>

namespace shale::detail {

bool memory_pressure::is_high(const system_memory& now, pool_clock::time_point when) noexcept {
  const auto before = std::exchange(stalled_, now.stalled);
  const auto elapsed = when - std::exchange(read_at_, when);
  if (before && now.stalled && (*now.stalled - *before) * 10 > elapsed) return true;
  return now.available_bytes && now.total_bytes && *now.available_bytes < *now.total_bytes / 16;
}

}  // namespace shale::detail
