// Peers that are C++ libraries: Eigen's tensors, and xtensor with xsimd and oneTBB. They are
// compiled for this machine, and have as many threads as Shale.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "support/contest.hpp"

namespace shale::bench {

/// The arrays of the large work of the suite `engine`: row-major matrices of float32.
struct peer_arrays {
  std::size_t rows;
  std::size_t columns;
  std::size_t side;  ///< of the square that the first elements form
  std::size_t cube;  ///< of the cube that the first elements form
  float* out;
  const float* a;
  const float* b;
  const float* c;
};

/// The libraries that were found when the benchmarks were configured.
class compiled_peers {
 public:
  /// The arrays must outlive this object.
  compiled_peers(const peer_arrays& arrays, int threads);
  ~compiled_peers();
  compiled_peers(const compiled_peers&) = delete;
  compiled_peers& operator=(const compiled_peers&) = delete;

  /// Adds a contender for each library that has this work.
  void add(std::vector<contender>& contenders, const std::string& work) const;

 private:
  struct libraries;
  std::unique_ptr<libraries> libraries_;
};

}  // namespace shale::bench
