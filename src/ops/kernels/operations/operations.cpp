#include "ops/kernels/operations/operations.hpp"

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

}  // namespace shale::ops
