// One line of a benchmark's table, printed as JSON; script/bench makes the table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "support/contest.hpp"

namespace shale::bench {

/// What has to be reached: a ratio of Shale's figure to another's, at most or at least.
struct target {
  ratio measured;
  double reach = 1;
  bool at_least = false;  ///< else at most
  std::string against;
};

struct row {
  std::string work;
  std::uint64_t bytes = 0;               ///< that one round works through
  double seconds = 0;                    ///< Shale's median round
  std::optional<ratio> limit{};          ///< Shale's speed as a part of what the hardware does
  std::map<std::string, ratio> peers{};  ///< peer's seconds / Shale's: above 1, Shale is faster
  std::optional<target> reach{};
  std::uint64_t peak_rss_bytes = 0;
  std::string note{};
};

/// Prints the row as one line of JSON on standard output.
void print(const row& what);

/// Whether the interval reaches the target.
bool met(const target& what);

/// VmHWM of this process, in bytes.
std::uint64_t peak_rss_bytes();

/// VmRSS of this process, in bytes.
std::uint64_t rss_bytes();

}  // namespace shale::bench
