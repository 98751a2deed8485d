// Copies elements between layouts, in parallel. A plain copy depends on the width of the elements
// only; a conversion is a kernel that the caller gives. A copy is a pass whose operands need no
// preparation.
#pragma once

#include "parallel/blocks/kernel.hpp"
#include "parallel/windows/window_walk.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// Copies `from` into `to`, which have one shape and one dtype and do not overlap. `to` is writable
/// and no two of its indices name one element.
/// Throws   io, corrupt, out_of_memory, cancelled
void copy_elements(const tensor& to, const tensor& from, executor& on);

/// The same with a kernel that converts from the dtype of `from` to that of `to`.
void copy_elements_by(kernel convert, const tensor& to, const tensor& from, executor& on,
                      streams_if streams = streams_if::larger_than_half_the_budget);

/// Copies inputs that the call itself would change. Holds the bytes of the copies, as a part of the
/// budget, for its lifetime.
class input_copies {
 public:
  /// `on` must outlive this object.
  explicit input_copies(executor& on) noexcept : on_(on) {}
  ~input_copies();
  input_copies(const input_copies&) = delete;
  input_copies& operator=(const input_copies&) = delete;

  /// Copies the elements into new memory of the executor's pool, in the same storage order.
  /// Broadcast axes are not repeated in memory.
  /// Throws   out_of_memory naming the bytes if the copies together exceed the budget
  tensor add(const tensor& values);

 private:
  executor& on_;
  std::size_t bytes_ = 0;
};

}  // namespace shale::parallel
