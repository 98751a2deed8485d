// The suite `container`: arrays in compressed chunks, small commits, dense arrays and many names,
// against libraries that keep arrays in files, and against what their parts cost alone.
//
//   bench_container FOLDER MEMORY_FOLDER [--threads N] [--rounds N] [--only TEXT] [--quick yes]
//                   [--python PYTHON --peers PROGRAM]
//                   [--rechunk-python PYTHON --rechunk-peers PROGRAM]
//   bench_container --writer PATH
//
// FOLDER is on a disk, MEMORY_FOLDER in memory, and both are empty. Work on compressed arrays runs
// on one thread, then on all (`--threads`). `--quick yes` does so little, once, that it shows only
// whether the suite works. PROGRAM is bench/peers/container_peers.py, or rechunk_peers.py, which
// PYTHON runs. The second form is the process that commits while others read.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "container/data_sets.hpp"
#include "container/suites.hpp"
#include "container/works.hpp"
#include "shale/executor.hpp"
#include "support/options.hpp"
#include "support/row.hpp"
#include "support/suite.hpp"

namespace shale::bench {
namespace {

// The libraries that the program of peers knows.
const std::vector<std::string>& peer_names() {
  static const std::vector<std::string> names = {"TensorStore", "zarr",   "zarrs", "Blosc2",
                                                 "h5py",        "TileDB", "dask"};
  return names;
}

// A row for a peer: its version, or that it is not there.
void print_peer(const std::string& peer, peer_process* peers) {
  const bool is_there = peers != nullptr && std::ranges::count(peers->names(), peer) > 0;
  print(row{.work = "peer: " + peer,
            .note = is_there ? peers->text(peer, "version") : "not installed"});
}

// The works on compressed arrays, on `chosen.threads` threads.
void compressed(const container_settings& chosen, const data_set& data) {
  executor on({.threads = chosen.threads});
  const executor::scope bound(on);
  const stored_data stored(chosen, data);
  const subject about = subject_of(chosen, data, stored);
  whole_arrays(about);
  if (data.name() != "smooth") return;
  parts_of_arrays(about);
  computed_arrays(about);
  // One processor is left to the writer.
  if (chosen.threads == 1) reading_beside_a_writer(about);
}

void other_works(const container_settings& chosen) {
  executor on({.threads = chosen.threads});
  const executor::scope bound(on);
  small_commits(chosen);
  dense_arrays(chosen);
  many_names(chosen);
  rechunking(chosen);
}

// Whether a work on this data set may be wanted.
bool is_wanted_data(const container_settings& chosen, const std::string& name) {
  const std::size_t colon = chosen.only.find(':');
  return colon == std::string::npos || chosen.only.substr(0, colon) == name;
}

int run(std::span<char*> arguments) {
  if (arguments.size() == 3 && std::string(arguments[1]) == "--writer")
    return run_writer(arguments[2]);
  if (arguments.size() < 3)
    throw std::invalid_argument("usage: bench_container FOLDER MEMORY_FOLDER [OPTION VALUE]…");
  const options given(arguments.subspan(3),
                      {"--threads", "--rounds", "--only", "--quick", "--python", "--peers",
                       "--rechunk-python", "--rechunk-peers"});
  const bool quick = given.text("--quick", "no") == "yes";
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  const auto all = static_cast<int>(given.number("--threads", processors));
  container_settings chosen{.folder = arguments[1], .memory_folder = arguments[2]};
  chosen.rounds = static_cast<int>(given.number("--rounds", quick ? 1 : 7));
  chosen.only = given.text("--only", "");
  if (quick) chosen.amount = few();

  std::unique_ptr<peer_process> peers;
  // A program of peers has one number of threads.
  const auto start = [&](int threads) {
    chosen.threads = threads;
    peers.reset();
    peers = given.start_peers({settings_of_peers(chosen)});
    chosen.peers = peers.get();
  };
  start(all);
  for (const std::string& peer : peer_names()) print_peer(peer, chosen.peers);
  {
    const std::unique_ptr<peer_process> rechunker =
        given.start_peers({settings_of_peers(chosen)}, "--rechunk-python", "--rechunk-peers");
    chosen.rechunker = rechunker.get();
    print_peer("rechunker", chosen.rechunker);
    other_works(chosen);
    chosen.rechunker = nullptr;
  }
  for (const std::string& name : data_set_names()) {
    if (!is_wanted_data(chosen, name)) continue;
    const data_set data(chosen, name);
    for (int threads = 1;; threads = all) {
      start(threads);
      compressed(chosen, data);
      if (threads == all) break;
    }
  }
  return 0;
}

}  // namespace
}  // namespace shale::bench

int main(int count, char** arguments) {
  return shale::bench::run_suite(shale::bench::run, count, arguments);
}
