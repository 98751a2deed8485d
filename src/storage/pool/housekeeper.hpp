// The one thread that ages the idle memory of all pools, and the list of the pools that live.
// Starts with the first idle block, sleeps while nothing ages.
#pragma once

#include <cstdint>

#include "storage/system_memory.hpp"

namespace shale::detail {

class pool_state;
struct thread_magazines;

/// Enters a pool into the list, and takes it off again; after `leave` nobody looks at it.
void join_pools(pool_state& pool);
void leave_pools(pool_state& pool) noexcept;

/// Tells the housekeeper that some pool has idle memory. Cheap when it knows.
void mind_idle_memory() noexcept;

/// Where the housekeeper reads whether memory is short; returns what it was before. For tests.
using memory_probe = system_memory (*)();
memory_probe exchange_memory_probe(memory_probe probe) noexcept;

/// The calling thread's magazines in `pool`; null while the thread ends, or if there is no memory
/// for them.
thread_magazines* magazines_of_this_thread(pool_state& pool) noexcept;

}  // namespace shale::detail
