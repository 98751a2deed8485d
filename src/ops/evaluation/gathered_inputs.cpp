#include "ops/evaluation/gathered_inputs.hpp"

#include <algorithm>

#include "parallel/operands/aliases.hpp"

namespace shale::ops {

tensor gathered_inputs::unchanged(const tensor& input) {
  const auto overlaps = [&](const tensor& output) { return parallel::may_overlap(output, input); };
  if (std::none_of(written_.begin(), written_.end(), overlaps)) return input;
  const auto [first, end] = copied_.equal_range(input.data());
  for (auto known = first; known != end; ++known)
    if (known->second.input.is_set_to(input)) return known->second.copy;
  if (!copies_) copies_ = std::make_unique<parallel::input_copies>(executor_);
  const tensor copy = copies_->add(input);
  copied_.emplace(input.data(), copied_input{input, copy});
  return copy;
}

}  // namespace shale::ops
