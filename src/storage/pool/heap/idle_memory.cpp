#include "storage/pool/heap/idle_memory.hpp"

#include <algorithm>
#include <utility>

namespace shale::detail {

namespace {

// Idle bytes that a pool may keep even if few bytes are live.
constexpr std::size_t idle_bytes_kept = std::size_t{64} << 20;

// How long a pool may have more idle memory than allowed before the excess is given back early.
constexpr std::chrono::milliseconds excess_allowed{1000};

}  // namespace

std::size_t idle_bytes_allowed(std::int64_t live_bytes) noexcept {
  return std::max(static_cast<std::size_t>(std::max<std::int64_t>(live_bytes, 0)) / 2,
                  idle_bytes_kept);
}

bool idle_excess::lasts(std::size_t idle_bytes, std::size_t allowed_bytes,
                        pool_clock::time_point now) noexcept {
  if (idle_bytes <= allowed_bytes) {
    since_.reset();
    return false;
  }
  if (!since_) since_ = now;
  return now - *since_ >= excess_allowed;
}

bool memory_pressure::is_high(const system_memory& memory, pool_clock::time_point now) noexcept {
  const auto before = std::exchange(stalled_, memory.stalled);
  const auto elapsed = now - std::exchange(read_at_, now);
  if (before && memory.stalled && (*memory.stalled - *before) * 10 > elapsed) return true;
  return memory.available_bytes && memory.total_bytes &&
         *memory.available_bytes < *memory.total_bytes / 16;
}

}  // namespace shale::detail
