// Tests the public functions without memory, at every allocation that they make: they throw an
// error with that code, and work again afterwards. It is a program of its own, because its `new`
// fails.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "shale/apply.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/fold_axes.hpp"
#include "shale/functions.hpp"
#include "shale/linalg.hpp"
#include "shale/map_tiles.hpp"
#include "shale/masks.hpp"
#include "shale/memory_pool.hpp"
#include "shale/ops.hpp"
#include "shale/random.hpp"
#include "shale/rolling.hpp"
#include "shale/scans.hpp"
#include "shale/scatter.hpp"
#include "shale/storage.hpp"
#include "shale/take.hpp"
#include "shale/tile_source.hpp"
#include "support/failing_memory.hpp"

namespace shale {
namespace {

using test::expect_errors_only;

// A tile source over a tensor.
class tiles final : public tile_source {
 public:
  explicit tiles(tensor values) : values_(std::move(values)) {}
  shale::dtype dtype() const noexcept override { return values_.dtype(); }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  bool writable() const noexcept override { return true; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override { copy_to(part(tile), into); }
  void store(const dims& tile, const tensor& source) override { copy_to(source, part(tile)); }

 private:
  tensor part(const dims& tile) const {
    const region box = tile_region(shape(), tile_shape_, tile);
    return values_.narrow(0, box.start[0], box.shape[0]);
  }
  static void copy_to(const tensor& from, const tensor& to) {
    for (index_t i = 0; i < from.size(); ++i)
      const_cast<tensor&>(to).elements<float>()[static_cast<std::size_t>(i)] =
          from.elements<const float>()[static_cast<std::size_t>(i)];
  }
  tensor values_;
  dims tile_shape_{100};
};

const tensor& values() {
  static const tensor made = [] {
    tensor x = tensor::zeros({300}, dtype::float32);
    for (auto& value : x.elements<float>()) value = 2;
    return x;
  }();
  return made;
}

TEST(FailingMemory, MakingThingsThrowsErrors) {
  expect_errors_only("executor", [] { const executor made({.threads = 2}); });
  expect_errors_only("memory_pool", [] { const memory_pool made; });
  expect_errors_only("storage::allocate", [] { storage::allocate(100); });
  expect_errors_only("storage::allocate, large", [] { storage::allocate(100000); });
  expect_errors_only("tensor::zeros", [] { tensor::zeros({20}, dtype::int8); });
  expect_errors_only("clone", [] { values().clone(); });
  expect_errors_only("reshape", [] { values().flip().reshape({3, 100}); });
  expect_errors_only("split", [] { values().split(7); });
  expect_errors_only("unstack", [] { values().unstack(); });
}

TEST(FailingMemory, AdoptedBytesAreDeletedOnceInAnyCase) {
  int deleted = 0;
  int calls = 0;
  std::byte bytes[8] = {};
  expect_errors_only("storage::adopt", [&] {
    ++calls;
    storage::adopt(bytes, sizeof bytes, [&](void*) { ++deleted; });
  });
  EXPECT_EQ(deleted, calls);
}

TEST(FailingMemory, ExpressionsThrowErrors) {
  const expr a(values());
  const auto source = std::make_shared<tiles>(values());
  const expr s(source);
  const std::vector<expr> parts{a, s, a + 1};
  expect_errors_only("leaf", [&] { const expr made(values()); });
  expect_errors_only("leaf of a source", [&] { const expr made(source); });
  expect_errors_only("number", [] { const expr made(3.5); });
  expect_errors_only("binary", [&] { a + a; });
  expect_errors_only("with a number", [&] { a * 2.0; });
  expect_errors_only("unary", [&] { sqrt(a); });
  expect_errors_only("cast", [&] { astype(a, dtype::float64); });
  expect_errors_only("where", [&] { where(a > 1, a, 0); });
  expect_errors_only("views", [&] { (a + a).narrow(0, 1, 20).flip({0}).expand_dims(0); });
  expect_errors_only("index", [&] { (a + a).index({slice{.start = 3}}); });
  expect_errors_only("expand", [&] { (a + a).broadcast_to({3, 300}); });
  expect_errors_only("reshape", [&] { (a + a).reshape({3, 100}); });
  expect_errors_only("arange", [] { arange(0, 10, 2, dtype::float32); });
  expect_errors_only("random numbers", [] {
    generator g(1);
    normal(g, {3, 4}, 0, 1, dtype::float16);
  });
  expect_errors_only("full", [] { full({3, 4}, 2, dtype::int16); });
  expect_errors_only("tile", [&] { tile(a, {2}); });
  expect_errors_only("repeat", [&] { repeat(a, 2, 0); });
  expect_errors_only("concat", [&] { concat(parts, 0); });
  expect_errors_only("matmul", [&] { matmul(a, a); });
  expect_errors_only("sum", [&] { sum(a, dims{0}); });
}

// Runs `call`, which is refused as long as there is enough memory.
void expect_errors_only_in_refused(const std::string& operation,
                                   const std::function<void()>& call) {
  expect_errors_only(operation, [&] {
    try {
      call();
    } catch (const error& refused) {
      if (refused.code() == errc::out_of_memory) throw;
      EXPECT_EQ(refused.code(), errc::invalid_argument) << operation;
    }
  });
}

TEST(FailingMemory, IndicesMasksAndScansThrowErrors) {
  executor on({.threads = 2});
  const executor::scope within(on);
  const expr a(values());
  const tensor indices = tensor::full({20}, 3, dtype::int64);
  const tensor short_indices = tensor::full({20}, 3, dtype::int16);
  const tensor beyond = tensor::full({20}, 300, dtype::int64);
  const tensor matrix = values().view({20, 15});
  const expr mask = a > 1;
  const expr columns = expr(short_indices).reshape({20, 1});
  expect_errors_only("take", [&] { eval(take(a * 2, short_indices, 0)); });
  const expr tiled(std::make_shared<tiles>(values()));
  expect_errors_only("take from tiles", [&] { eval(take(tiled, short_indices, 0)); });
  expect_errors_only("masked_select from tiles", [&] { masked_select(tiled, arange(300) < 3); });
  expect_errors_only("take_along_axis", [&] { eval(take_along_axis(matrix, columns, 1)); });
  expect_errors_only("gather", [&] { eval(gather(matrix, 1, columns)); });
  expect_errors_only("gather_nd", [&] { eval(gather_nd(matrix, columns)); });
  expect_errors_only("masked_select", [&] { masked_select(a, mask); });
  expect_errors_only("nonzero", [&] { nonzero(a); });
  expect_errors_only("argwhere", [&] { argwhere(matrix); });
  expect_errors_only("masked_fill", [&] { eval(masked_fill(a, mask, 3)); });
  expect_errors_only("masked_scatter", [&] { masked_scatter(values().clone(), mask, a * 2); });
  const tensor out = values().clone();
  expect_errors_only("scatter", [&] { scatter(out, 0, short_indices, 1); });
  expect_errors_only("scatter_add", [&] { scatter_add(out, 0, indices, out.narrow(0, 0, 20)); });
  expect_errors_only("index_copy", [&] { index_copy(out, 0, short_indices, a.narrow(0, 0, 20)); });
  expect_errors_only("index_add", [&] { index_add(out, 0, indices, 1); });
  expect_errors_only("index_fill", [&] { index_fill(out, 0, indices, 1); });
  expect_errors_only("put", [&] { put(out.view({20, 15}).narrow(1, 1, 2), short_indices, 1); });
  expect_errors_only("cumulative_sum", [&] { eval(cumulative_sum(a)); });
  expect_errors_only("cummax", [&] { eval(cummax(expr(matrix) * 2, 1)); });
  expect_errors_only("diff", [&] { eval(diff(a, 3)); });
  expect_errors_only("rolling_sum", [&] { eval(rolling_sum(a, 3)); });
  expect_errors_only("rolling_max", [&] { eval(rolling_max(expr(matrix) * 2, 2, 1) + 1); });
  expect_errors_only("correlate by transforms", [&] {
    eval(correlate(a, a.narrow(0, 0, 9), window_mode::same, window_method::fft));
  });
  expect_errors_only("nanargmin", [&] { eval(nanargmin(matrix, 1)); });
  {
    // A little budget cuts the operands into slabs.
    executor small({.threads = 2, .memory_bytes = 300});
    const executor::scope slabs(small);
    expect_errors_only("masked_select in slabs", [&] { masked_select(a, mask); });
    expect_errors_only("nonzero in slabs", [&] { nonzero(a); });
  }
  const auto refused = expect_errors_only_in_refused;
  refused("take, out of range", [&] { eval(take(a, beyond)); });
  refused("take, no such axis", [&] { take(a, indices, 3); });
  refused("take, other indices", [&] { take(a, a); });
  refused("take_along_axis, rank", [&] { take_along_axis(matrix, indices, 0); });
  refused("gather, rank", [&] { gather(matrix, 0, indices); });
  refused("gather_nd, depth", [&] { gather_nd(a, indices); });
  refused("masked_select, shape", [&] { masked_select(a, matrix); });
  refused("nonzero, rank", [] { nonzero(1); });
  refused("masked_scatter, few values", [&] { masked_scatter(out, mask, 1); });
  refused("scatter, out of range", [&] { scatter(out, 0, beyond, 1); });
  refused("scatter, rank", [&] { scatter(matrix, 0, indices, 1); });
  refused("index_add, rank", [&] { index_add(out, 0, matrix, 1); });
  refused("put, out of range", [&] { put(out, beyond, 1); });
  refused("cumulative_sum, no such axis", [&] { cumulative_sum(a, 3); });
  refused("rolling_mean, no window", [&] { rolling_mean(a, 0); });
  refused("rolling_mean, no such axis", [&] { rolling_mean(a, 1, 3); });
  refused("nanargmax, no such axis", [&] { nanargmax(astype(a, dtype::float32), 3); });
  refused("diff, negative", [&] { diff(a, -1); });
  refused("diff, no such axis", [&] { diff(a, 1, 7); });
}

TEST(FailingMemory, RefusedRandomNumbersThrowErrors) {
  const auto refused = [](const std::string& operation, auto call) {
    expect_errors_only_in_refused(operation, [&] {
      generator g(1);
      call(g);
      ADD_FAILURE() << operation;
    });
  };
  constexpr auto type = dtype::float64;
  refused("skip", [](generator& g) {
    g.skip(1);
    g.skip(~std::uint64_t{0});
  });
  refused("uniform, dtype", [](generator& g) { uniform(g, {3}, 0, 1, dtype::int8); });
  refused("uniform, range", [](generator& g) { uniform(g, {3}, 2, 1); });
  refused("uniform, shape", [](generator& g) { uniform(g, {index_t{1} << 40, index_t{1} << 40}); });
  refused("normal", [](generator& g) { normal(g, {3}, 0, -1, type); });
  refused("log_normal", [](generator& g) { log_normal(g, {3}, 0, -1, type); });
  refused("exponential", [](generator& g) { exponential(g, {3}, -1); });
  refused("cauchy", [](generator& g) { cauchy(g, {3}, 0, -1); });
  refused("geometric", [](generator& g) { geometric(g, {3}, 0); });
  refused("bernoulli", [](generator& g) { bernoulli(g, {3}, 2); });
  refused("integers", [](generator& g) { integers(g, {3}, 2, 1); });
  refused("integers, dtype", [](generator& g) { integers(g, {3}, 0, 1000, dtype::int8); });
  refused("permutation", [](generator& g) { permutation(g, -1); });
  refused("multinomial, once", [](generator& g) { multinomial(g, arange(3), 3, replacement::no); });
  refused("choice", [](generator& g) { choice(g, arange(3), 4, replacement::no); });
  refused("multinomial, count", [](generator& g) { multinomial(g, arange(3), -1); });
  refused("multinomial, weights", [](generator& g) { multinomial(g, -arange(3), 10); });
}

TEST(FailingMemory, DeepExpressionsGoWithoutMemory) {
  auto deep = std::make_unique<expr>(values());
  for (int k = 0; k < 200000; ++k) *deep = *deep + 1;
  const test::no_memory now;
  deep.reset();
}

TEST(FailingMemory, CallsThrowErrors) {
  for (const int threads : {1, 3}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    const expr a(values());
    auto source = std::make_shared<tiles>(values().clone());
    const expr s(source);
    tensor out = values().clone();
    const std::vector<expr> several{sum(a), mean(a + 1), a * 2};
    const std::vector<expr> pieces{arange(10), tile(a, {2})};
    expect_errors_only("eval", [&] { eval(sqrt(a * a + 1)); });
    expect_errors_only("eval of several", [&] { eval_all(several); });
    expect_errors_only("eval of tiles", [&] { eval(sum(s + a)); });
    expect_errors_only("eval_into", [&] { eval_into(out, a + 1); });
    expect_errors_only("eval_into, overlapping", [&] { eval_into(out, expr(out.flip()) + 1); });
    expect_errors_only("eval_into tiles", [&] { eval_into(*source, a + 1); });
    expect_errors_only("explain", [&] { explain(sum(a + 1)); });
    expect_errors_only("generators", [&] { eval(concat(pieces, 0)); });
    expect_errors_only("random numbers", [] {
      generator g(1);
      eval(uniform(g, {300}).flip());
    });
    expect_errors_only("permutation", [] {
      generator g(1);
      permutation(g, 300);
    });
    expect_errors_only("multinomial", [&] {
      generator g(1);
      multinomial(g, arange(1, 20), 300);
    });
    expect_errors_only("fill", [&] { fill(out, 3); });
    expect_errors_only("copy", [&] { copy(out, a); });
    expect_errors_only("full_tensor", [&] { tensor::full({20}, 1, dtype::int8); });
    expect_errors_only("equal", [&] { array_equal(a, a + 0); });
    expect_errors_only("dot", [&] { dot(values(), values()); });
    const tensor matrix = values().view({20, 15});
    expect_errors_only("matmul", [&] { matmul(matrix, matrix.swapaxes(0, 1)); });
    expect_errors_only("apply", [&] { apply([](float& x, float y) { x = y; }, out, values()); });
    expect_errors_only("apply, overlapping",
                       [&] { apply([](float& x, float y) { x = y; }, out, out.flip()); });
    expect_errors_only("for_each_lane", [&] {
      for_each_lane<float>(
          0, [](lane<float>) {}, out);
    });
    expect_errors_only("for_each_segment",
                       [&] { for_each_segment<float>([](std::span<float>) {}, out); });
    expect_errors_only("reduce", [&] {
      reduce(
          values(), 0.0, [](double& to, float x) { to += x; },
          [](double& to, double other) { to += other; });
    });
    // The tensors have several tiles, so that helpers fail as well.
    const tensor large = tensor::zeros({1 << 18}, dtype::float32);
    expect_errors_only("sum of several tiles", [&] { eval(sum(expr(large))); });
  }
}

TEST(FailingMemory, FunctionsOverTilesAndAxesThrowErrors) {
  for (const int threads : {1, 3}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    const auto source = std::make_shared<tiles>(values().clone());
    const auto sink = std::make_shared<tiles>(values().clone());
    const tensor out = values().clone();
    const halo_options around{.widths = {{1, 2}}, .mode = halo_mode::wrap};
    const tile_operand in_memory = with_halo(values(), around);
    const tile_operand in_tiles = with_halo(source, around);
    const tile_operand overlapping = with_halo(out, around);
    const map_tiles_options hundreds{.tile_shape = {100}};
    const auto store = [](tile_view<float> to, tile_view<const float> from) { to(0) = from(-1); };
    expect_errors_only("with_halo", [&] { with_halo(values(), around); });
    expect_errors_only("map_tiles", [&] { map_tiles(store, hundreds, out, in_memory); });
    expect_errors_only("map_tiles, overlapping", [&] { map_tiles(store, out, overlapping); });
    expect_errors_only("map_tiles of tiles", [&] { map_tiles(store, sink, in_tiles); });
    expect_errors_only("apply_indexed",
                       [&] { apply_indexed([](const dims&, float& x) { x = 1; }, out); });
    const auto add_up = [](float& to, float x) { to += x; };
    const tensor matrix = values().view({20, 15});
    expect_errors_only("reduce_axes", [&] { reduce_axes(matrix, {0}, 0.0F, add_up, add_up); });
    expect_errors_only("scan_axis", [&] { scan_axis(matrix, 0, 0.0F, add_up, add_up); });
  }
}

// If the engine lacks memory, that is an error; an exception of the caller's function is not
// changed.
TEST(FailingMemory, ExceptionsOfCallersFunctionsPassAsTheyAre) {
  executor on({.threads = 2});
  const executor::scope within(on);
  const tensor large = tensor::zeros({1 << 18}, dtype::float32);
  EXPECT_THROW(apply([](float&) { throw std::bad_alloc(); }, large), std::bad_alloc);
  EXPECT_THROW(reduce(
                   large, 0, [](int&, float) { throw std::bad_alloc(); }, [](int&, int) {}),
               std::bad_alloc);
}

}  // namespace
}  // namespace shale
