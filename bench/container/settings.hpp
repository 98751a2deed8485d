// What all works of the suite `container` are told.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "shale/dims.hpp"
#include "support/peer_process.hpp"

namespace shale::bench {

/// How much the works do. Shapes are multiples of the chunks' shapes.
struct amounts {
  dims smooth{256, 1024, 1024};
  dims elevation{16384, 16384};
  dims noise{64, 1024, 1024};
  index_t chunks = 32;
  index_t singles = 1000;
  index_t updates = 1000;
  index_t appends = 200;
  index_t tiny_chunks = 100'000;
  std::vector<index_t> arrays{10'000, 100'000};

  /// Rows of 4 KiB of the small and the large array that is changed.
  std::vector<index_t> dense_rows{1024, 262'144};
  index_t dense_elements = index_t{1} << 27;

  /// An array of steps of a simulation, whose chunks become those of series of single places.
  dims rechunked{2048, 1024, 1024};
  dims rechunked_from{1, 1024, 1024};
  dims rechunked_to{2048, 16, 32};
  std::size_t rechunk_memory_bytes = std::size_t{1} << 30;
};

/// Amounts that show in seconds whether the suite works, and measure nothing.
amounts few();

struct container_settings {
  std::string folder;         ///< on a disk
  std::string memory_folder;  ///< in memory, where only programs are measured
  int threads = 1;            ///< of Shale and of the peers
  int rounds = 7;
  std::string only{};  ///< names of works contain this
  amounts amount{};
  peer_process* peers = nullptr;
  peer_process* rechunker = nullptr;  ///< the peer of rechunking alone
};

/// The settings that the programs of peers get, as JSON.
std::string settings_of_peers(const container_settings& chosen);

/// "1,000" for 1000.
std::string grouped(index_t number);

}  // namespace shale::bench
