// What a scanner of kernels must give, compared over extents, scanned axes, layouts and instruction
// sets.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "ops/kernels/blocks.hpp"

namespace shale::test {

/// A scan without its C++ types, so that one test body serves all.
struct expected_scan {
  ops::scan kind;
  dtype in, out;
  std::function<void(std::byte* to, generator& random)> draw;
  /// Compares the bytes of a result with the contiguous values up to its own.
  std::function<bool(const std::byte* got, const std::byte* values, index_t count)> agrees;
  std::function<std::string(const std::byte* value)> show;
};

/// Checks `agrees` for every result of a scan of random values, and for the state that it leaves.
void expect_scan(const expected_scan& tested);

}  // namespace shale::test
