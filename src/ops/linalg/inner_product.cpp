#include "ops/linalg/inner_product.hpp"

#include <algorithm>
#include <vector>

#include "ops/kernels/dispatch/dispatch.hpp"
#include "ops/linalg/products.hpp"
#include "parallel/pass/pass_loop.hpp"

namespace shale::ops {

namespace {

/// The elements of one block within a unit of a dot product.
constexpr index_t dot_block = 1024;
constexpr std::size_t widest_item = 16;

/// The dtype in which products are computed and summed.
dtype dot_dtype(dtype type) {
  switch (kind(type)) {
    case dtype_kind::floating:
      return dtype::float64;
    case dtype_kind::complex:
      return dtype::complex128;
    default:
      return type;
  }
}

// Computes a dot product block by block: it converts both vectors to the wide dtype, multiplies
// them, and folds the products.
class dot_loop {
 public:
  dot_loop(dtype a, dtype b, dtype type)
      : wide_(dot_dtype(type)),
        widen_a_(find_cast(a, wide_)),
        widen_b_(find_cast(b, wide_)),
        multiply_(find_kernel(operation::multiply, wide_)),
        fold_(find_reducer(wide_ == dtype::boolean ? reduction::any : reduction::sum, wide_)) {}

  const reducer& fold() const { return *fold_; }

  /// Folds the products of a unit into a state.
  void run(const parallel::unit& here, std::byte* state) const {
    fold_->start(state, 1);
    here.for_each_block(
        [&](std::byte* const* data, const index_t* strides, index_t count, index_t, auto&&) {
          for (index_t first = 0; first < count; first += dot_block)
            run_block(data[0] + first * strides[0], strides[0], data[1] + first * strides[1],
                      strides[1], std::min(dot_block, count - first), state);
        });
  }

 private:
  void run_block(std::byte* a, index_t a_stride, std::byte* b, index_t b_stride, index_t count,
                 std::byte* state) const {
    alignas(64) std::byte left[dot_block * widest_item];
    alignas(64) std::byte right[dot_block * widest_item];
    const auto item = static_cast<index_t>(item_bytes(wide_));
    widen(widen_a_, a, a_stride, count, left);
    widen(widen_b_, b, b_stride, count, right);
    std::byte* product[] = {left, left, right};
    const index_t dense[] = {item, item, item, 0, 0, 0};
    multiply_(product, dense, count, 1);
    std::byte* folded[] = {state, left};
    const index_t strides[] = {0, item, 0, 0};
    fold_->accumulate(folded, strides, count, 1);
  }

  void widen(parallel::kernel convert, std::byte* bytes, index_t stride, index_t count,
             std::byte* to) const {
    std::byte* data[] = {to, bytes};
    const index_t strides[] = {static_cast<index_t>(item_bytes(wide_)), stride, 0, 0};
    convert(data, strides, count, 1);
  }

  const dtype wide_;
  const parallel::kernel widen_a_, widen_b_, multiply_;
  const reducer* const fold_;
};

}  // namespace

tensor inner_product(const tensor& a, const tensor& b, executor& on) {
  const dtype type = product_dtype(a.dtype(), b.dtype());
  std::vector<parallel::loop_operand> operands;
  operands.reserve(2);
  for (const tensor* vector : {&a, &b}) operands.push_back({*vector, false});
  parallel::pass_loop pass(std::move(operands),
                           {.coordinates = true, .fixed_units = true, .counted = false}, on);
  const dot_loop loop(a.dtype(), b.dtype(), type);
  const reducer& fold = loop.fold();
  // Each unit has a state. The states are merged in the order of the units, so the result does not
  // depend on threads. The first state is the result.
  std::vector<std::uint64_t> states((static_cast<std::size_t>(pass.unit_count()) + 1) *
                                    (fold.state_bytes / 8));
  auto* first = reinterpret_cast<std::byte*>(states.data());
  fold.start(first, 1);
  pass.run([&](const parallel::unit& here) {
    loop.run(here, first + static_cast<std::size_t>(here.number + 1) * fold.state_bytes);
  });
  for (index_t number = 0; number < pass.unit_count(); ++number)
    fold.merge(first, first + static_cast<std::size_t>(number + 1) * fold.state_bytes, 1);
  alignas(16) std::byte result[widest_item];
  fold.finish(first, result, 1, 0);

  const tensor out = tensor::empty({}, type, &on.pool());
  std::byte* data[] = {const_cast<std::byte*>(out.data()), result};
  const index_t strides[] = {static_cast<index_t>(out.item_bytes()),
                             static_cast<index_t>(item_bytes(fold.result)), 0, 0};
  find_cast(fold.result, type)(data, strides, 1, 1);
  return out;
}

}  // namespace shale::ops
