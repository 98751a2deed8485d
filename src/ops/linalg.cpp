#include "shale/linalg.hpp"

#include <algorithm>
#include <vector>

#include "ops/gemm.hpp"
#include "ops/kernels.hpp"
#include "ops/products.hpp"
#include "parallel/executor_state.hpp"
#include "parallel/operands.hpp"
#include "parallel/tile_loop.hpp"
#include "shale/error.hpp"
#include "shale/expr.hpp"

namespace shale {

namespace {

executor& begin_call(executor* on) {
  executor& chosen = parallel::choose(on);
  chosen.state().count.calls.fetch_add(1, std::memory_order_relaxed);
  return chosen;
}

// ---- dot ---------------------------------------------------------------------------------------

/// Elements of one block within a tile of a dot product.
constexpr index_t dot_block = 1024;
constexpr std::size_t widest_item = 16;

/// What the products of a dot are computed and summed in.
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

class dot_loop {
 public:
  dot_loop(const tensor& a, const tensor& b, dtype type, index_t tile_elements)
      : a_(a),
        b_(b),
        tile_elements_(tile_elements),
        wide_(dot_dtype(type)),
        widen_a_(ops::find_cast(a.dtype(), wide_)),
        widen_b_(ops::find_cast(b.dtype(), wide_)),
        multiply_(ops::find_kernel(ops::operation::multiply, wide_)),
        fold_(ops::find_reducer(wide_ == dtype::boolean ? ops::reduction::any : ops::reduction::sum,
                                wide_)) {}

  const ops::reducer& fold() const { return *fold_; }

  void run(index_t tile, std::byte* state) const {
    alignas(64) std::byte left[dot_block * widest_item];
    alignas(64) std::byte right[dot_block * widest_item];
    const auto item = static_cast<index_t>(item_bytes(wide_));
    fold_->start(state, 1);
    const index_t end = std::min(a_.size(), (tile + 1) * tile_elements_);
    for (index_t at = tile * tile_elements_; at < end; at += dot_block) {
      const index_t count = std::min(dot_block, end - at);
      load(widen_a_, a_, at, count, left);
      load(widen_b_, b_, at, count, right);
      std::byte* product[] = {left, left, right};
      const index_t dense[] = {item, item, item, 0, 0, 0};
      multiply_(product, dense, count, 1);
      std::byte* folded[] = {state, left};
      const index_t strides[] = {0, item, 0, 0};
      fold_->accumulate(folded, strides, count, 1);
    }
  }

 private:
  void load(parallel::kernel widen, const tensor& from, index_t at, index_t count,
            std::byte* to) const {
    const index_t stride = from.strides()[0] * static_cast<index_t>(from.item_bytes());
    std::byte* data[] = {to, const_cast<std::byte*>(from.data()) + at * stride};
    const index_t strides[] = {static_cast<index_t>(item_bytes(wide_)), stride, 0, 0};
    widen(data, strides, count, 1);
  }

  const tensor& a_;
  const tensor& b_;
  const index_t tile_elements_;
  const dtype wide_;
  const parallel::kernel widen_a_, widen_b_, multiply_;
  const ops::reducer* const fold_;
};

// ---- matmul ------------------------------------------------------------------------------------

dims batch_axes(const tensor& of) { return dims(of.shape().begin(), of.shape().end() - 2); }

/// `shape` of a batch with a matrix behind it.
dims with_matrix(dims batch, index_t rows, index_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

}  // namespace

tensor dot(const tensor& a, const tensor& b, executor* on) {
  if (a.rank() != 1 || b.rank() != 1 || a.size() != b.size())
    throw error(errc::invalid_argument, "dot needs two rank-1 tensors of one length",
                {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape()),
                 "matmul multiplies matrices"});
  const dtype type = ops::product_dtype(a.dtype(), b.dtype());
  executor& chosen = begin_call(on);
  const parallel::loop_operand operands[] = {{a, false}, {b, false}};
  const parallel::plan over = parallel::make_plan(operands, {.keep_axes = true});
  const dot_loop loop(a, b, type, over.tile_shape()[0]);
  const ops::reducer& fold = loop.fold();
  // One state a tile, merged in order.
  std::vector<std::uint64_t> states((static_cast<std::size_t>(over.tile_count()) + 1) *
                                    (fold.state_bytes / 8));
  auto* first = reinterpret_cast<std::byte*>(states.data());
  fold.start(first, 1);
  const auto run_tile = [&](index_t tile) {
    loop.run(tile, first + static_cast<std::size_t>(tile + 1) * fold.state_bytes);
  };
  if (a.storage().kind() == storage_kind::file || b.storage().kind() == storage_kind::file) {
    parallel::window_walk walk(over, parallel::streamed(operands), chosen);
    parallel::for_each_tile(chosen, over.tile_count(),
                            [&](index_t tile, int) {
                              parallel::window_walk::tile_visit visit(walk, tile);
                              run_tile(tile);
                              visit.end();
                            },
                            {.most_workers = walk.workers_max()});
    walk.finish();
  } else {
    parallel::for_each_tile(chosen, over.tile_count(), [&](index_t tile, int) { run_tile(tile); });
  }
  for (index_t tile = 0; tile < over.tile_count(); ++tile)
    fold.merge(first, first + static_cast<std::size_t>(tile + 1) * fold.state_bytes, 1);
  alignas(16) std::byte result[widest_item];
  fold.finish(first, result, 1, 0);
  a.storage().check();
  b.storage().check();

  const tensor out = tensor::empty({}, type, &chosen.pool());
  std::byte* data[] = {const_cast<std::byte*>(out.data()), result};
  const index_t strides[] = {static_cast<index_t>(out.item_bytes()),
                             static_cast<index_t>(item_bytes(fold.result)), 0, 0};
  ops::find_cast(fold.result, type)(data, strides, 1, 1);
  return out;
}

tensor matmul(const tensor& a, const tensor& b, executor* on) {
  const dims shape = ops::product_shape(a.shape(), b.shape());
  const dtype type = ops::product_dtype(a.dtype(), b.dtype());
  const tensor left = a.rank() == 1 ? a.unsqueeze(0) : a;
  const tensor right = b.rank() == 1 ? b.unsqueeze(1) : b;
  const dims batch = broadcast_shapes(batch_axes(left), batch_axes(right));
  const index_t m = left.shape(-2), k = left.shape(-1), n = right.shape(-1);

  executor& chosen = begin_call(on);
  const dtype compute = ops::multiplied_as(type);
  tensor out = with_context(
      [&] {
        return "multiply " + to_string(a.shape()) + " by " + to_string(b.shape()) + " into " +
               std::string(name(compute));
      },
      [&] { return tensor::empty(with_matrix(batch, m, n), compute, &chosen.pool()); });
  if (out.size() != 0) {
    ops::multiply_matrices(out, left.expand(with_matrix(batch, m, k)),
                           right.expand(with_matrix(batch, k, n)), chosen);
    a.storage().check();
    b.storage().check();
  }
  if (compute != type) out = eval(cast(expr(out), type), &chosen);
  auto& count = chosen.state().count;
  count.bytes_read.fetch_add(a.size_bytes() + b.size_bytes(), std::memory_order_relaxed);
  count.bytes_written.fetch_add(out.size_bytes(), std::memory_order_relaxed);
  return out.view(shape);
}

std::string blas_name() { return ops::blas_description(); }

}  // namespace shale
