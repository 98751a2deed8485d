// Evaluates a small expression in the calling thread, by a pass that the thread keeps.
//
// An evaluation of a few elements spends most of its time before and after the kernels: walking the
// graph, compiling, planning, sharing out the work. None of this depends on the elements, so a
// small expression is compiled once for its form, and later evaluations only compare addresses.
// Whether an evaluation is small does not depend on the number of threads or on the budget.
//
// An evaluation is small if all of these hold:
//   small_evaluation.cpp  it takes no longer than 2^16 additions
//   expression_form.hpp   it has at most 12 operands, 32 nodes and 8 constants; all operands are in
//                         memory, and nothing is staged but a reduction
//   kept_pass.cpp         it needs at most 128 KiB of scratch memory, and as much for states; a
//                         reduction that keeps axes has one tile and a contiguous output
//   small_evaluation.cpp  it has elements; the output is writable and lies apart from the inputs;
//                         the executor has no progress sink, compares no checksums, and is not
//                         cancelled
//
// Invariants
//   small.1  the results have the same bits as those of the general evaluation
#pragma once

#include "ops/evaluation/kept_pass.hpp"
#include "parallel/kept/kept_table.hpp"
#include "shale/executor.hpp"

namespace shale::ops {

class small_evaluation {
 public:
  /// Decides whether `out` = `value`, which has the shape of `out`, can be evaluated by a kept
  /// pass.
  /// Cost     for a form that is kept: about 100 ns, and nothing is allocated
  /// Lifetime the tensor and the value must outlive this object
  small_evaluation(const tensor& out, const node_ref& value, executor& on);

  bool applies() const noexcept { return static_cast<bool>(pass_); }

  /// Evaluates, if `applies()`.
  void run();

 private:
  void compute(std::span<std::byte* const> bases);
  void reduce(std::span<std::byte* const> bases);
  void reduce_to_many(std::span<std::byte* const> bases);

  executor& on_;
  expression_form form_;
  parallel::kept_table<kept_pass>::used pass_;
  std::byte* scratch_ = nullptr;
};

}  // namespace shale::ops
