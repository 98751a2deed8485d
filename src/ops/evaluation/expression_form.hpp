// Describes the form of a small expression: everything that its tape and its plan depend on.
// Addresses and the values of constants are not part of the form. Two expressions of one form
// differ only in the tensors that they read and in the constants that they hold, so the tape and
// the plan of one serve the other.
//
// Invariants
//   form.1  two expressions with equal keys have the same operations in the same order, operands of
//           the same dtypes, shapes and strides, and the same pattern of operands, constants and
//           subexpressions that occur more than once
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/graph/graph.hpp"
#include "parallel/kept/form_key.hpp"
#include "parallel/kept/operand_extent.hpp"

namespace shale::ops {

/// Cost     a few dozen instructions for each node; allocates nothing
/// Lifetime the tensors and the expression must outlive the form
class expression_form {
 public:
  /// Operands are the output and the different tensors that are read; larger expressions have no
  /// form.
  static constexpr int operands_max = 12;

  struct constant {
    dtype type;
    std::array<std::byte, 16> bytes;  // an element of that dtype, then zeros
  };

  /// `out` has the shape of `value`. If `value` is a reduction (and not a view of one), the form
  /// describes the reduction's input and the reduction.
  expression_form(const tensor& out, const node_ref& value);

  /// Whether the expression has a form: it is small, it reads only tensors in memory and constants,
  /// and nothing is staged except a reduction as the last step.
  bool exists() const noexcept { return exists_ && !key_.overflown(); }

  const parallel::form_key& key() const noexcept { return key_; }

  /// About how long the form's operations take for an element, in additions of float32.
  index_t additions() const noexcept { return additions_; }

  /// The output, then the tensors that are read, in the order in which they occur.
  std::span<const parallel::placed_operand> operands() const noexcept {
    return {operands_.data(), static_cast<std::size_t>(operands_used_)};
  }
  std::span<const constant> constants() const noexcept {
    return {constants_.data(), static_cast<std::size_t>(constants_used_)};
  }

  /// The value whose elements are computed: the reduction's input if there is a reduction.
  const node_ref& computed() const noexcept { return *computed_; }
  const dims& shape() const noexcept { return (*computed_)->shape; }
  const detail::stage* reduction() const noexcept { return reduction_; }

  /// Whether there is a reduction and it folds all axes. Then it has one result.
  bool folds_all_axes() const noexcept {
    return reduction_ != nullptr && reduction_->axes.size() == shape().size();
  }

 private:
  static constexpr int nodes_max = 32;
  static constexpr int constants_max = 8;

  void visit(const node& value);
  void visit_tensor(const tensor& values);
  void visit_constant(dtype type, const scalar& value);

  bool exists_ = true;
  int operands_used_ = 0;
  int constants_used_ = 0;
  int nodes_used_ = 0;
  index_t additions_ = 0;
  parallel::form_key key_;
  const node_ref* computed_ = nullptr;
  const detail::stage* reduction_ = nullptr;
  std::array<parallel::placed_operand, operands_max> operands_;  // the first operands_used_ are set
  std::array<constant, constants_max> constants_;
  std::array<const node*, nodes_max> nodes_;
};

}  // namespace shale::ops
