// A work of the suite `container`: Shale, its limits and its peers in turns, and the rows of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "container/settings.hpp"
#include "support/contest.hpp"

namespace shale::bench {

/// What is asked of Shale beside another contender.
struct goal {
  std::string against;  ///< a limit, or "" for the fastest peer
  double reach = 1;
  bool at_least = true;  ///< at least so many times the other's speed; else at most its seconds
};

struct container_work {
  std::string name;               ///< as the peers know it
  std::function<double()> shale;  ///< does it once; seconds
  std::uint64_t bytes = 0;
  std::vector<contender> limits{};
  std::vector<goal> goals{};
  std::map<std::string, double> packing{};  ///< see `row`
  bool has_threads = true;                  ///< the row names their number
};

/// Whether works of that name are wanted.
bool is_wanted(const container_settings& chosen, const std::string& name);

/// Measures a work, if it is wanted, and prints a row for its first goal, with all peers, and one
/// for each other goal.
void measure(const container_work& work, const container_settings& chosen);

}  // namespace shale::bench
