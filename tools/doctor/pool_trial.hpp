// What really happens when memory is taken from a pool: pages, times, statistics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/system_text.hpp"
#include "shale/memory_pool.hpp"

namespace shale::tools {

struct pool_step {
  std::string name;
  pool_statistics pool;
};

struct pool_trial {
  std::uint64_t bytes = 0;          ///< taken; 0: nothing was tried
  known<std::uint64_t> huge_bytes;  ///< of them on huge pages
  double first_seconds = 0;         ///< to take and touch them, fresh from the system
  double again_seconds = 0;         ///< the same from what the pool keeps
  std::vector<pool_step> steps;
  bool all_clear = true;  ///< everything has come back
  std::string failure;    ///< why nothing could be taken; "" if it could, or was not tried
};

/// Takes `bytes` from `pool`, touches them and gives them back, twice; then trims.
pool_trial try_pool(memory_pool& pool, std::uint64_t bytes,
                    const system_tree& system = system_tree());

}  // namespace shale::tools
