// Where reducers must find extrema, compared over extents, layouts, arrangements of states, orders
// of positions and instruction sets.
#pragma once

#include <cstddef>

#include "ops/kernels/blocks.hpp"

namespace shale::test {

/// An element type without its C++ type, so that one test body serves all.
struct element_type {
  dtype type;
  void (*some)(std::byte* to, generator& random);
  void (*from)(std::byte* to, double number);
  bool (*wins)(const std::byte* value, const std::byte* best, bool largest);
};

/// Compares the positions of extrema among random values with those that `wins` gives.
void expect_first_of_the_best(const element_type& element);

}  // namespace shale::test
