// The inputs that the generators of a tape read in place, at any positions. A pass that writes over
// such an input would change elements that it still has to read, so such an input is copied first.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "parallel/pass/copy.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

class gathered_inputs {
 public:
  /// `written` are the outputs of the pass that lie in memory. `written` and `on` must outlive this
  /// object.
  gathered_inputs(const std::vector<tensor>& written, executor& on)
      : written_(written), executor_(on) {}

  /// Returns `input`, or a copy of it if it may overlap an output. An input that several generators
  /// read is copied once.
  tensor unchanged(const tensor& input);

  /// Hands over the owner of the copies; null if nothing was copied. Call it last.
  std::unique_ptr<parallel::input_copies> take_copies() noexcept { return std::move(copies_); }

 private:
  struct copied_input {
    tensor input;
    tensor copy;
  };

  const std::vector<tensor>& written_;
  executor& executor_;
  std::unique_ptr<parallel::input_copies> copies_;
  std::multimap<const std::byte*, copied_input> copied_;  // by their first bytes
};

}  // namespace shale::ops
