// What an elementwise kernel must give, compared over extents, layouts and instruction sets.
#pragma once

#include <cstddef>
#include <string>

#include "ops/kernels/blocks.hpp"
#include "ops/kernels/operations/operation_facts.hpp"

namespace shale::test {

/// An operation without its C++ types, so that one test body serves all.
struct expected_operation {
  ops::operation op;
  dtype in, out;
  void (*draw)(std::byte* to, generator& random);
  void (*oracle)(std::byte* out, const std::byte* a, const std::byte* b);
  bool (*agrees)(const std::byte* got, const std::byte* wanted);
  bool (*same_out)(const std::byte*, const std::byte*);
  std::string (*show_in)(const std::byte*);
  std::string (*show_out)(const std::byte*);
};

/// Compares the results of random values, element by element.
void expect_operation(const expected_operation& tested);

}  // namespace shale::test
