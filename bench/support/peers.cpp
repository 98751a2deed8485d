#include "support/peers.hpp"

namespace shale::bench {

std::string add_peers(std::vector<contender>& contenders, const std::string& work,
                      peer_process* peers) {
  std::string failures;
  if (peers == nullptr) return failures;
  for (const std::string& peer : peers->names()) {
    try {
      if (peers->seconds(peer, work))
        contenders.push_back({peer, [=] { return peers->seconds(peer, work).value(); }, true});
    } catch (const peer_failure& failure) {
      failures += (failures.empty() ? "" : "; ") + std::string(failure.what());
    }
  }
  return failures;
}

std::vector<std::string> peers_among(const std::vector<contender>& contenders) {
  std::vector<std::string> found;
  for (const contender& each : contenders)
    if (each.is_peer) found.push_back(each.name);
  return found;
}

void print_with_peers(row made, const outcome& seen, const std::vector<contender>& contenders) {
  for (const std::string& peer : peers_among(contenders)) made.peers[peer] = seen.of(peer, "shale");
  print(made);
}

}  // namespace shale::bench
