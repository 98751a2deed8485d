// One line of the table of a benchmark, printed as JSON. script/bench makes the table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "support/contest.hpp"

namespace shale::bench {

/// A goal: the ratio of Shale's result to that of another contender is at most or at least this.
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

  /// Bytes of elements for each byte that is stored, of Shale ("shale") and of peers.
  std::map<std::string, double> packing{};
  std::string note{};  ///< what else is to be said, in the table's last column
};

/// Prints the row as one line of JSON on standard output.
void print(const row& result);

/// Whether the interval of the ratio reaches the goal.
bool met(const target& goal);

/// The peak resident memory of this process (VmHWM) since its start or `reset_peak_rss`, in bytes.
std::uint64_t peak_rss_bytes();
void reset_peak_rss();

/// The resident memory of this process (VmRSS), in bytes.
std::uint64_t rss_bytes();

}  // namespace shale::bench
