#include "parallel/operands.hpp"

#include <string>

#include "parallel/copy.hpp"
#include "parallel/executor_state.hpp"
#include "shale/error.hpp"

namespace shale::parallel {

namespace {

// The layout in bytes as absolute addresses, so that two owners of the same memory compare, with
// one more axis over the bytes of an element, and without axes that lead to no other element;
// nothing if that is beyond the largest rank.
std::optional<layout> byte_layout(const tensor& values) {
  const auto item = static_cast<index_t>(values.item_bytes());
  dims shape;
  dims strides;
  for (index_t axis = 0; axis < values.rank(); ++axis) {
    if (values.shape()[axis] == 1 || values.strides()[axis] == 0) continue;
    shape.push_back(values.shape()[axis]);
    strides.push_back(values.strides()[axis] * item);
  }
  if (shape.size() == max_rank) return std::nullopt;
  shape.push_back(item);
  strides.push_back(1);
  return layout(shape, strides,
                reinterpret_cast<std::intptr_t>(values.storage().data()) + values.offset() * item);
}

}  // namespace

bool same_elements(const tensor& a, const tensor& b) {
  if (a.item_bytes() != b.item_bytes() || a.data() != b.data() || !(a.shape() == b.shape()))
    return false;
  for (index_t axis = 0; axis < a.rank(); ++axis)
    if (a.shape()[axis] > 1 && a.strides()[axis] != b.strides()[axis]) return false;
  return true;
}

bool may_overlap(const tensor& a, const tensor& b) {
  if (a.size() == 0 || b.size() == 0) return false;
  const auto left = byte_layout(a);
  const auto right = byte_layout(b);
  return !left || !right || overlaps(*left, 1, *right, 1);
}

tensor copied(const tensor& values, executor& on) {
  // A broadcast axis is copied before it is repeated.
  tensor distinct = values;
  for (index_t axis = 0; axis < values.rank(); ++axis)
    if (values.strides()[axis] == 0 && values.shape()[axis] > 1)
      distinct = distinct.narrow(axis, 0, 1);
  if (distinct.size_bytes() > on.memory_bytes())
    throw error(errc::out_of_memory, "an input overlaps the output and must be copied first",
                {"the copy takes " + std::to_string(distinct.size_bytes()) +
                     " bytes, the budget is " + std::to_string(on.memory_bytes()),
                 "write into another tensor, or raise the executor's memory"});
  const tensor copy = tensor::empty(distinct.shape(), distinct.dtype(), &on.pool());
  copy_elements(copy, distinct, on);
  return copy.expand(values.shape());
}

void prepare(std::span<loop_operand> operands, executor& on) {
  dims shape;
  for (const auto& operand : operands) shape = broadcast_shapes(shape, operand.values.shape());
  for (auto& operand : operands) {
    if (!operand.written) {
      operand.values = operand.values.expand(shape);
      continue;
    }
    const tensor& out = operand.values;
    if (out.shape() != shape)
      throw error(errc::invalid_argument, "an output cannot be broadcast",
                  {"the output has shape " + to_string(out.shape()) + ", the operands need " +
                   to_string(shape)});
    if (!out.writable())
      throw error(errc::access_denied, "an output's storage is read-only",
                  {"write into a clone, or map the file for writing"});
    if (out.geometry().is_broadcast())
      throw error(errc::invalid_argument, "an output has a broadcast axis (stride 0)",
                  {"its strides are " + to_string(out.strides()) + "; write into a clone"});
    if (self_overlaps(out.geometry()))
      throw error(errc::invalid_argument, "an output overlaps itself",
                  {"shape " + to_string(out.shape()) + ", strides " + to_string(out.strides()) +
                   ": two indices name one element"});
  }
  for (std::size_t o = 0; o < operands.size(); ++o) {
    if (!operands[o].written) continue;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (k == o || same_elements(operands[o].values, operands[k].values)) continue;
      if (!may_overlap(operands[o].values, operands[k].values)) continue;
      if (operands[k].written)
        throw error(errc::invalid_argument, "two outputs overlap",
                    {"operands " + std::to_string(o) + " and " + std::to_string(k)});
      operands[k].values = copied(operands[k].values, on);
    }
  }
}

plan make_plan(std::span<const loop_operand> operands, const plan_options& options) {
  std::vector<plan_operand> planned;
  planned.reserve(operands.size());
  for (const auto& operand : operands)
    planned.push_back({operand.values.geometry(), operand.values.item_bytes()});
  return plan(planned, options);
}

std::vector<std::byte*> bases(std::span<const loop_operand> operands) {
  std::vector<std::byte*> addresses;
  addresses.reserve(operands.size());
  for (const auto& operand : operands)
    addresses.push_back(const_cast<std::byte*>(operand.values.storage().data()));
  return addresses;
}

std::vector<streamed_operand> streamed(std::span<const loop_operand> operands) {
  std::vector<streamed_operand> result;
  for (std::size_t k = 0; k < operands.size(); ++k)
    result.push_back({static_cast<int>(k), operands[k].values.storage(), operands[k].written});
  return result;
}

void conclude(std::span<loop_operand> operands) {
  for (auto& operand : operands) {
    if (operand.written) operand.values.storage().bump_version();
    operand.values.storage().check();
  }
}

}  // namespace shale::parallel
