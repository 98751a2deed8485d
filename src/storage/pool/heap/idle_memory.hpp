// Decides which idle memory of a pool goes back to the system: memory above a certain age, memory
// above a certain amount, and all of it when the system is short of memory. All numbers of this
// rule are here, except the limits of a thread's cache (thread_cache.hpp).
//
//   1  A freed block stays in the cache of its thread. It returns to its heap if a tick finds that
//      the thread does not use blocks of that size, or if the thread caches too many bytes.
//   2  In its heap it ages (`decay_ages`): first the system may take the memory, later the memory
//      is given back, and finally the addresses are unmapped.
//   3  A pool that has too much idle memory for a second (`idle_excess`) ages its oldest blocks at
//      once, as many as the excess needs (`shared_heaps::age_oldest`).
//   4  If the system is short of memory (`memory_pressure`), the next tick unmaps all idle memory.
//
// The housekeeper thread ticks; `pool_state::age_idle_memory` is one tick of one pool;
// `segment_heap::age` makes the system calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "storage/pool/heap/block.hpp"
#include "storage/system/system_memory.hpp"

namespace shale::detail {

/// The time between two ticks, while any pool has idle memory.
inline constexpr std::chrono::milliseconds idle_memory_tick{500};

/// The ages at which idle memory takes the next step.
struct decay_ages {
  std::chrono::milliseconds lazy{1000};     ///< the system may take the memory (MADV_FREE)
  std::chrono::milliseconds drop{10'000};   ///< the memory is given back (MADV_DONTNEED)
  std::chrono::milliseconds unmap{28'000};  ///< unmapped; within 30 s including caches and ticks
};

/// Makes dirty memory of this age or more lazy, and changes nothing else.
constexpr decay_ages only_lazy_from(std::chrono::milliseconds age) noexcept {
  constexpr std::chrono::hours never{24 * 365 * 100};
  return {.lazy = age, .drop = never, .unmap = never};
}

/// An excess is taken from the oldest blocks first. Ages are compared in whole milliseconds; all
/// from `ages_told_apart_ms` - 1 on are equal. Few dirty blocks are that old, because of
/// `decay_ages::lazy`.
inline constexpr std::size_t ages_told_apart_ms = 1024;

/// Idle bytes that a pool may keep: half of its live bytes, but at least 64 MiB.
std::size_t idle_bytes_allowed(std::int64_t live_bytes) noexcept;

/// Remembers since when a pool has had more idle memory than allowed.
class idle_excess {
 public:
  /// Takes the state at a tick. Returns whether the pool has had too much for a second.
  bool lasts(std::size_t idle_bytes, std::size_t allowed_bytes,
             pool_clock::time_point now) noexcept;

 private:
  std::optional<pool_clock::time_point> since_;
};

/// Less idle memory than this, in all pools, is not worth giving back under memory pressure.
inline constexpr std::size_t worth_giving_back_bytes = std::size_t{16} << 20;

/// Decides whether the system is short of memory.
class memory_pressure {
 public:
  /// Whether, since the previous call, some task waited for memory for more than a tenth of the
  /// time, or whether less than a sixteenth of the machine's memory is available now.
  bool is_high(const system_memory& memory, pool_clock::time_point now) noexcept;

 private:
  std::optional<std::chrono::microseconds> stalled_;
  pool_clock::time_point read_at_{};
};

}  // namespace shale::detail
