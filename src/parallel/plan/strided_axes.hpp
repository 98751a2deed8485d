// Holds the axes of an index space with the strides of N operands, and brings them into the order
// in which a loop over the operands is fastest. It knows no tiles.
#pragma once

#include <span>
#include <vector>

#include "parallel/plan/plan_operand.hpp"
#include "shale/dims.hpp"

namespace shale::parallel {

struct strided_axes {
  dims shape;
  std::vector<dims> strides;     ///< bytes between neighbours, by operand and axis
  std::vector<index_t> origins;  ///< bytes from an operand's base to its first element, by operand

  /// The operands' axis that each axis was before it was sorted, and 1, or -1 if it was reversed.
  /// They are not defined for merged axes.
  dims own_axes;
  dims directions;

  /// The axes of the operands as they are. Axes of length 1 have stride 0.
  /// Throws   invalid_argument (operands of different shapes)
  explicit strided_axes(std::span<const plan_operand> operands);

  index_t rank() const noexcept { return shape.size(); }

  /// Drops axes of length 1 and orders the others by stride, the widest outermost. An axis that all
  /// operands walk backwards is reversed.
  void sort(std::span<const plan_operand> operands);

  /// Replaces two neighbouring axes by one if, for every operand, a step of the outer axis is as
  /// long as the whole inner axis. Contiguous operands end with a single axis.
  void merge();

  /// If some operand that orders the axes is fastest along another axis than the last one, moves
  /// that axis to the last but one place. Returns whether there was one.
  bool pair_fastest(std::span<const plan_operand> operands);

  /// Adds an axis of length 1 if there is none.
  void ensure_one_axis();

  /// The axis of the operand's smallest stride if a loop in the order of the axes would visit the
  /// operand against its storage order, else -1. It would if another axis than the last one has
  /// the smallest stride, and neighbours along the last axis lie in different cache lines.
  index_t nearest_axis(std::size_t operand) const noexcept;

 private:
  void reorder(const dims& order);
  void reverse_backward_axes();
};

}  // namespace shale::parallel
