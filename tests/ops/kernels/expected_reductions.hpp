// What a reducer of kernels must give, compared over extents, layouts, arrangements of states and
// instruction sets.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>

#include "ops/kernels/blocks.hpp"

namespace shale::test {

/// A reduction without its C++ types, so that one test body serves all.
struct expected_reduction {
  ops::reduction op;
  dtype in, out;
  double parameter;
  std::function<void(std::byte* to, generator& random)> draw;
  /// Compares the bytes of a result with the contiguous values that were folded into it.
  std::function<testing::AssertionResult(const std::byte* got, const std::byte* values,
                                         index_t count)>
      agrees;
};

/// Checks `agrees` for every result of every arrangement, and that all instruction sets and all
/// layouts of a block give the same bits.
void expect_reduction(const expected_reduction& tested);

}  // namespace shale::test
