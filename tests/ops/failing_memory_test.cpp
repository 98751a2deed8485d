// Tests the public functions without memory, at every allocation that they make: they throw an
// error with that code, and work again afterwards. It is a program of its own, because its `new`
// fails.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <vector>

#include "shale/apply.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/linalg.hpp"
#include "shale/memory_pool.hpp"
#include "shale/ops.hpp"
#include "shale/storage.hpp"
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
