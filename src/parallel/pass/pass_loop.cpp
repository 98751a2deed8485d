#include "parallel/pass/pass_loop.hpp"

#include "parallel/pass/prepare.hpp"

namespace shale::parallel {

namespace {

std::vector<loop_operand> prepared(std::vector<loop_operand> operands, const pass_options& options,
                                   input_copies& copies) {
  prepare(operands, copies, options.lane_axis);
  return operands;
}

}  // namespace

pass_loop::pass_loop(std::vector<loop_operand> operands, const pass_options& options, executor& on)
    : copies_(on),
      operands_(prepared(std::move(operands), options, copies_)),
      options_(options),
      on_(on),
      way_(choose_way(operands_, options_, on)) {}

index_t pass_loop::lane_size(std::size_t operand) const noexcept {
  return operands_[operand].values.shape()[options_.lane_axis];
}

index_t pass_loop::lane_stride(std::size_t operand) const noexcept {
  if (lane_size(operand) == 1) return 0;
  const index_t stride = operands_[operand].values.strides()[options_.lane_axis];
  return way_.access_of(operand) == operand_access::copied && stride != 0 ? 1 : stride;
}

}  // namespace shale::parallel
