// The generator of a call that draws random numbers.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "language/values/arguments.hpp"
#include "shale/error.hpp"
#include "shale/random.hpp"

namespace shale::tools {

/// A generator of the seed that the call names. The same command gives the same numbers, so the
/// seed must be given. Two calls with one seed give the same numbers.
/// Throws   invalid_argument (no seed, a seed that is given without its name, a negative seed)
inline generator seeded(arguments& from) {
  if (from.positional_left() > 0)
    throw error(errc::invalid_argument,
                fmt::format("{}: the seed must be named, as in seed=1", from.function()));
  const index_t seed = from.index("seed");
  if (seed < 0)
    throw error(errc::invalid_argument, fmt::format("{}: 'seed' is negative", from.function()),
                {"got " + std::to_string(seed)});
  return generator(static_cast<std::uint64_t>(seed));
}

}  // namespace shale::tools
