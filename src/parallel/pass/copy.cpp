#include "parallel/pass/copy.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "parallel/blocks/block_copy.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/pass/run_pass.hpp"
#include "shale/error.hpp"
#include "tensor/parts.hpp"

namespace shale::parallel {

namespace {

// Allocates a tensor with the shape of `like`, whose axes have the same order in memory as in
// `like`.
tensor empty_in_order(const layout& like, dtype type, memory_pool& pool) {
  dims axes;
  for (index_t axis = 0; axis < like.rank(); ++axis) axes.push_back(axis);
  std::stable_sort(axes.begin(), axes.end(), [&](index_t a, index_t b) {
    return std::abs(like.strides()[a]) > std::abs(like.strides()[b]);
  });
  dims shape, back = axes;
  for (index_t place = 0; place < axes.size(); ++place) {
    shape.push_back(like.shape()[axes[place]]);
    back[axes[place]] = place;
  }
  return tensor::empty(shape, type, &pool).permute_dims(back);
}

}  // namespace

void copy_elements_by(kernel convert, const tensor& to, const tensor& from, executor& on,
                      streams_if streams) {
  const std::array operands{loop_operand{to, true}, loop_operand{from, false}};
  const pass_options options{.whole_tile_blocks = convert == copy_kernel(to.item_bytes()),
                             .additions = 1,
                             .streams = streams,
                             .counted = false};
  run_pass(operands, options, choose_way(operands, options, on), on, [convert](const unit& here) {
    here.for_each_block([convert](std::byte* const* data, const index_t* strides, index_t inner,
                                  index_t outer, auto&&) { convert(data, strides, inner, outer); });
  });
}

void copy_elements(const tensor& to, const tensor& from, executor& on) {
  copy_elements_by(copy_kernel(to.item_bytes()), to, from, on);
}

input_copies::~input_copies() { state_of(on_).tokens.give(bytes_); }

tensor input_copies::add(const tensor& values) {
  const tensor distinct = detail::without_repeats(values);
  const std::size_t bytes = distinct.size_bytes();
  if (bytes_ > on_.memory_bytes() || bytes > on_.memory_bytes() - bytes_)
    throw error(
        errc::out_of_memory, "an input overlaps the output and must be copied first",
        {"the copy takes " + std::to_string(bytes) + " bytes beside " + std::to_string(bytes_) +
             " of other copies, the budget is " + std::to_string(on_.memory_bytes()),
         "write into another tensor, or raise the executor's memory"});
  const tensor copy = empty_in_order(distinct.layout(), distinct.dtype(), on_.pool());
  state_of(on_).tokens.take(bytes);
  bytes_ += bytes;
  copy_elements(copy, distinct, on_);
  return copy.broadcast_to(values.shape());
}

}  // namespace shale::parallel
