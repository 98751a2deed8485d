// Peers beside Shale in a contest, and in its row.
#pragma once

#include <string>
#include <vector>

#include "support/contest.hpp"
#include "support/peer_process.hpp"
#include "support/row.hpp"

namespace shale::bench {

/// Adds a contender for each peer that has this work; it does it once, to find out. A peer whose
/// work fails is left out. `peers` may be null.
/// Returns  the texts of the failures, for the row's note
std::string add_peers(std::vector<contender>& contenders, const std::string& work,
                      peer_process* peers);

/// The names of the contenders that are peers.
std::vector<std::string> peers_among(const std::vector<contender>& contenders);

/// Prints the row, with the peers' seconds as ratios to those of the contender "shale".
void print_with_peers(row made, const outcome& seen, const std::vector<contender>& contenders);

}  // namespace shale::bench
