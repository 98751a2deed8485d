#include "ops/kernels/operations/operations.hpp"

#include <cstddef>
#include <iterator>

#include "ops/kernels/operations/operation_facts.hpp"

namespace shale::ops {

int arity(operation op) noexcept { return facts_of(op).arity; }

dtype result_dtype(operation op, dtype type) noexcept {
  const result_rule rule = facts_of(op).result;
  if (rule == result_rule::same) return type;
  if (rule == result_rule::boolean) return dtype::boolean;
  if (type == dtype::complex64) return dtype::float32;
  if (type == dtype::complex128) return dtype::float64;
  return type;
}

const char* name_of(reduction kind) noexcept {
  static constexpr const char* names[] = {"sum",  "prod",          "min",    "max",
                                          "mean", "var",           "std",    "any",
                                          "all",  "count_nonzero", "argmin", "argmax"};
  static_assert(std::size(names) == static_cast<std::size_t>(reduction::count_));
  return names[static_cast<std::size_t>(kind)];
}

const char* name_of(scan kind) noexcept {
  static constexpr const char* names[] = {"cumulative_sum", "cumulative_prod", "cummin", "cummax"};
  static_assert(std::size(names) == static_cast<std::size_t>(scan::count_));
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace shale::ops
