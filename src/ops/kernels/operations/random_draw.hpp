// Describes what a kernel of random numbers draws, and the type of such kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shale/dtype.hpp"

namespace shale::ops {

/// What is drawn, and the dtypes in which kernels compute it.
enum class distribution : std::uint8_t {
  uniform,         // float32, float64
  normal,          // float32, float64, as the next three
  log_normal,      // e to the power of `normal`
  exponential,     // first: scale
  cauchy,          // first: median; second: scale
  geometric,       // float64
  bernoulli,       // bool
  integers,        // uint64; fewer than 2^32 numbers
  integers_of_64,  // uint64; any number of them
  words,           // uint64: the words themselves
  count_
};

/// The seed and the parameters of a distribution. Each uses the parameters that it needs.
struct random_draw {
  std::uint64_t seed = 0;
  double first = 0;              ///< lowest number, mean, median, scale; -log(1 - p) of `geometric`
  double second = 0;             ///< width of the range, deviation, scale
  double highest = 0;            ///< largest result of `uniform`
  std::uint64_t whole = 0;       ///< lowest integer; the threshold of `bernoulli` less 1
  std::uint64_t count = 0;       ///< how many integers there are
  std::uint8_t unused_bits = 0;  ///< low bits of a word that `uniform` in float32 leaves out
  bool never = false;            ///< `bernoulli` of probability 0
};

/// The kernels that draw from a distribution in a dtype. An element depends on the draw and on its
/// position alone. Both kernels give the same bits for a position, for every instruction set.
struct random_kernel {
  /// The elements at the positions `first`, `first` + 1, …
  void (*run)(const random_draw& draw, std::uint64_t first, std::int64_t count, std::byte* out);

  /// The elements at any positions.
  void (*gather)(const random_draw& draw, const std::uint64_t* positions, std::int64_t count,
                 std::byte* out);
};

}  // namespace shale::ops
