#include "container/works.hpp"

#include "support/peer_process.hpp"
#include "support/peers.hpp"
#include "support/row.hpp"

namespace shale::bench {

namespace {

std::string label_of(const container_work& work, const container_settings& chosen) {
  if (!work.has_threads) return work.name;
  return work.name + ", " + std::to_string(chosen.threads) +
         (chosen.threads == 1 ? " thread" : " threads");
}

void append(std::string& note, const std::string& text) {
  if (!text.empty()) note += (note.empty() ? "" : "; ") + text;
}

// A peer whose work fails in a later round is left out, with a note, and the others begin anew.
outcome measured(std::vector<contender>& contenders, int rounds, std::string& note) {
  for (;;) {
    try {
      return compete(contenders, rounds);
    } catch (const peer_failure& failure) {
      append(note, failure.what());
      std::erase_if(contenders, [&](const contender& each) { return each.name == failure.peer; });
    }
  }
}

// The goals that can be judged: without peers, there is no fastest one.
std::vector<target> judged(const container_work& work, const outcome& seen,
                           const std::vector<std::string>& peers) {
  std::vector<target> found;
  for (const goal& asked : work.goals) {
    const bool of_peers = asked.against.empty();
    if (of_peers && peers.empty()) continue;
    const std::string other = of_peers ? seen.best(peers) : asked.against;
    found.push_back({asked.at_least ? seen.of(other, "shale") : seen.of("shale", other),
                     asked.reach, asked.at_least, of_peers ? "the fastest peer, " + other : other});
  }
  return found;
}

// The packing of those that take part, and a note of peers that store clearly fewer bytes.
void add_packing(row& made, const container_work& work, const std::vector<std::string>& peers) {
  const auto own = work.packing.find("shale");
  if (own == work.packing.end()) return;
  made.packing["shale"] = own->second;
  for (const std::string& peer : peers) {
    const auto found = work.packing.find(peer);
    if (found == work.packing.end()) continue;
    made.packing[peer] = found->second;
    if (found->second > 1.005 * own->second) append(made.note, peer + " packs more");
  }
}

}  // namespace

bool is_wanted(const container_settings& chosen, const std::string& name) {
  return name.find(chosen.only) != std::string::npos;
}

void measure(const container_work& work, const container_settings& chosen) {
  if (!is_wanted(chosen, work.name)) return;
  std::vector<contender> contenders = {{"shale", work.shale}};
  contenders.insert(contenders.end(), work.limits.begin(), work.limits.end());
  std::string failures = add_peers(contenders, work.name, chosen.peers);
  const outcome seen = measured(contenders, chosen.rounds, failures);
  const std::vector<std::string> peers = peers_among(contenders);
  const std::vector<target> targets = judged(work, seen, peers);

  row made{.work = label_of(work, chosen), .bytes = work.bytes, .seconds = seen.median("shale")};
  if (!work.limits.empty()) made.limit = seen.of(work.limits[0].name, "shale");
  if (!targets.empty()) made.reach = targets[0];
  add_packing(made, work, peers);
  append(made.note, failures);
  print_with_peers(made, seen, contenders);
  for (std::size_t k = 1; k < targets.size(); ++k) {
    row other{.work = made.work + ": " + targets[k].against,
              .bytes = made.bytes,
              .seconds = made.seconds};
    other.reach = targets[k];
    print(other);
  }
}

}  // namespace shale::bench
