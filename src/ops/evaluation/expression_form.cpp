#include "ops/evaluation/expression_form.hpp"

#include <algorithm>
#include <cstring>

#include "ops/kernels/operations/operation_facts.hpp"

namespace shale::ops {

using namespace detail;

namespace {

// The first byte of a word says what the word, and the words after it, describe.
enum class mark : std::uint64_t {
  output,
  operand,
  known_operand,
  constant,
  node,
  known_node,
  reduction
};

constexpr std::uint64_t word_of(mark kind, std::uint64_t first = 0, std::uint64_t second = 0,
                                std::uint64_t third = 0) noexcept {
  return static_cast<std::uint64_t>(kind) << 56 | third << 32 | second << 16 | first;
}

constexpr std::uint64_t code(dtype type) noexcept { return static_cast<std::uint64_t>(type); }

// The stage of a value that is a whole reduction; null for other values.
const stage* reduction_of(const node& value) noexcept {
  const auto* staged = std::get_if<staged_leaf>(&value.content);
  if (!staged || !staged->from->reduces || staged->map || staged->under) return nullptr;
  return staged->from.get();
}

}  // namespace

expression_form::expression_form(const tensor& out, const node_ref& value)
    : computed_(&value), reduction_(reduction_of(*value)) {
  if (reduction_) computed_ = &reduction_->input;
  exists_ = parallel::is_in_memory(out);
  operands_[0] = {&out, out.data()};
  operands_used_ = 1;
  key_.add(word_of(mark::output, code(out.dtype()), static_cast<std::uint64_t>(shape().size())));
  key_.add(shape());
  if (reduction_) {
    std::uint64_t parameter;
    std::memcpy(&parameter, &reduction_->parameter, sizeof parameter);
    key_.add(word_of(mark::reduction, static_cast<std::uint64_t>(reduction_->kind),
                     static_cast<std::uint64_t>(reduction_->axes.size()),
                     static_cast<std::uint64_t>(out.rank())));
    key_.add(reduction_->axes);
    key_.add(parameter);
  }
  if (!folds_all_axes()) key_.add(out.strides());
  visit(**computed_);
}

// The recursion is at most nodes_max deep (graph.4).
void expression_form::visit(const node& value) {
  if (!exists_) return;
  if (const auto* leaf = std::get_if<tensor_leaf>(&value.content))
    return visit_tensor(leaf->values);
  if (const auto* leaf = std::get_if<constant_leaf>(&value.content))
    return visit_constant(value.type, leaf->value);

  const auto known = std::find(nodes_.begin(), nodes_.begin() + nodes_used_, &value);
  if (known != nodes_.begin() + nodes_used_)
    return key_.add(word_of(mark::known_node, static_cast<std::uint64_t>(known - nodes_.begin())));
  if (nodes_used_ == nodes_max) {
    exists_ = false;
    return;
  }
  nodes_[static_cast<std::size_t>(nodes_used_++)] = &value;
  if (const auto* operation = std::get_if<operation_node>(&value.content)) {
    key_.add(word_of(mark::node, code(value.type), static_cast<std::uint64_t>(operation->op),
                     operation->inputs.size()));
    additions_ += additions_in(operation->op, operation->inputs.back()->type);
    for (const auto& input : operation->inputs) visit(*input);
  } else if (const auto* cast = std::get_if<cast_node>(&value.content)) {
    constexpr auto no_operation = static_cast<std::uint64_t>(operation::count_);
    key_.add(word_of(mark::node, code(value.type), no_operation, 1));
    ++additions_;
    visit(*cast->input);
  } else {
    exists_ = false;
  }
}

// The same elements are one operand, even if they come from several tensor handles.
void expression_form::visit_tensor(const tensor& values) {
  const parallel::placed_operand added{&values, values.data()};
  for (int k = 1; k < operands_used_; ++k)
    if (parallel::same_view(operands_[static_cast<std::size_t>(k)], added))
      return key_.add(word_of(mark::known_operand, static_cast<std::uint64_t>(k)));
  if (operands_used_ == operands_max || !parallel::is_in_memory(values)) {
    exists_ = false;
    return;
  }
  operands_[static_cast<std::size_t>(operands_used_++)] = added;
  key_.add(word_of(mark::operand, code(values.dtype())));
  key_.add(values.strides());
}

void expression_form::visit_constant(dtype type, const scalar& value) {
  constant made{type, {}};
  shale::visit(type, all_types{}, [&]<class T>(std::type_identity<T>) {
    const T element = value.as<T>();
    std::memcpy(made.bytes.data(), &element, sizeof element);
  });
  int number = 0;
  while (number < constants_used_) {
    const constant& other = constants_[static_cast<std::size_t>(number)];
    if (other.type == made.type && other.bytes == made.bytes) break;
    ++number;
  }
  if (number == constants_max) {
    exists_ = false;
    return;
  }
  if (number == constants_used_) constants_[static_cast<std::size_t>(constants_used_++)] = made;
  key_.add(word_of(mark::constant, code(type), static_cast<std::uint64_t>(number)));
}

}  // namespace shale::ops
