// Takes memory from a pool and records pages, times and statistics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/system/system_text.hpp"
#include "shale/memory_pool.hpp"

namespace shale::tools {

struct pool_step {
  std::string name;
  pool_statistics pool;
};

struct pool_trial {
  std::uint64_t bytes = 0;          ///< bytes taken; 0 if nothing was tried
  known<std::uint64_t> huge_bytes;  ///< bytes on huge pages
  double first_seconds = 0;         ///< time to take and touch fresh memory of the system
  double again_seconds = 0;         ///< time to take and touch memory that the pool has kept
  std::vector<pool_step> steps;
  bool all_clear = true;  ///< whether all memory has been returned
  std::string failure;    ///< the reason why no memory could be taken; empty if there is none
};

/// Takes `bytes` from `pool`, touches them and gives them back, twice. Then trims the pool.
pool_trial try_pool(memory_pool& pool, std::uint64_t bytes,
                    const system_tree& system = system_tree());

}  // namespace shale::tools
