// The housekeeper: the thread that ages the idle memory of all pools by the rule in
// idle_memory.hpp. It starts with the first idle block and sleeps while nothing ages.
#pragma once

#include <atomic>

#include "storage/system/system_memory.hpp"

namespace shale::detail {

/// Whether the housekeeper is ticking or about to tick.
inline std::atomic<bool> housekeeper_awake = false;
void wake_housekeeper() noexcept;

/// Tells the housekeeper that some pool has idle memory. Cheap if it is awake.
inline void announce_idle_memory() noexcept {
  if (!housekeeper_awake.load(std::memory_order_relaxed)) wake_housekeeper();
}

/// Replaces the function by which the housekeeper reads the state of memory; returns the previous
/// one. For tests.
using memory_probe = system_memory (*)();
memory_probe exchange_memory_probe(memory_probe probe) noexcept;

}  // namespace shale::detail
