// Tests that views of expressions equal the same views of the evaluated tensors, for all kinds of
// leaves.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shale/creation.hpp"
#include "shale/error.hpp"
#include "shale/functions.hpp"
#include "shale/manipulation.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::code_of;

// A tile source whose elements count in row-major order.
class counted final : public tile_source {
 public:
  counted(const dims& shape, const dims& tile) : values_(eval(count(shape))), tile_(tile) {}

  static expr count(const dims& shape) {
    return arange(0, element_count(shape), 1, dtype::int32).reshape(shape);
  }
  shale::dtype dtype() const noexcept override { return dtype::int32; }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    tensor part = values_;
    for (index_t axis = 0; axis < tile.size(); ++axis)
      part = part.narrow(axis, tile[axis] * tile_[axis], into.shape(axis));
    copy(into, part);
  }

 private:
  tensor values_;
  dims tile_;
};

// Expressions of shape (4, 6, 5) with every kind of leaf.
std::vector<std::pair<std::string, expr>> every_leaf() {
  const dims shape{4, 6, 5};
  const tensor stored = eval(counted::count(shape));
  const expr a = stored;
  const expr tiles(std::make_shared<counted>(shape, dims{2, 4, 3}));
  const std::vector<expr> halves{a.narrow(1, 0, 3), a.narrow(1, 3, 3)};
  return {{"a tensor", a},
          {"a strided tensor", expr(eval(a.permute_dims({2, 0, 1})).permute_dims({1, 2, 0}))},
          {"a broadcast tensor", expr(stored.narrow(1, 2, 1).broadcast_to(shape))},
          {"a number", full(shape, 3)},
          {"a range", counted::count(shape)},
          {"tiles", tiles},
          {"tiles and a tensor", tiles * 2 - a.flip({0})},
          {"an operation", astype(a, dtype::float64) * 0.5 + 1},
          {"a reduction", sum(a, {1}, keepdims::yes) + a},
          {"a reduction alone", expr(sum(tiles.expand_dims(0), {0}))},
          {"joined parts", concat(halves, 1)},
          {"repeated parts", tile(a.narrow(1, 0, 3), {1, 2, 1})},
          {"a product", matmul(a, a.swapaxes(1, 2)).narrow(2, 1, 5)}};
}

struct view_of_both {
  const char* name;
  std::function<expr(const expr&)> lazy;
  std::function<tensor(const tensor&)> eager;
};

template <class View>
view_of_both both(const char* name, View view) {
  return {name, view, view};
}

std::vector<view_of_both> every_view() {
  return {both("moveaxis", [](const auto& x) { return x.moveaxis(-1, 0); }),
          both("swapaxes", [](const auto& x) { return x.swapaxes(0, 2); }),
          both("expand_dims", [](const auto& x) { return x.expand_dims(-1); }),
          both("broadcast_to",
               [](const auto& x) {
                 return x.expand_dims(0).broadcast_to({2, 4, 6, 5});
               }),
          both("flip", [](const auto& x) { return x.flip(); }),
          both("brackets",
               [](const auto& x) {
                 return x[{slice{.step = -2}, newaxis, 3, ellipsis}];
               }),
          both("ravel", [](const auto& x) { return x.ravel(); }),
          both("unfold", [](const auto& x) { return x.unfold(1, 3, 2); }),
          both("unfold of one", [](const auto& x) { return x.unfold(0, 1, 1); }),
          both("diagonal", [](const auto& x) { return x.diagonal(); }),
          both("diagonal above", [](const auto& x) { return x.diagonal(1, 2, 0); }),
          both("diagonal outside", [](const auto& x) { return x.diagonal(9); }),
          both("a view of a view", [](const auto& x) {
            return x.unfold(1, 2, 1).diagonal(0, 1, 3).swapaxes(0, 1).flip({0});
          })};
}

TEST(ExprViews, EqualThoseOfTheTensors) {
  for (const auto& [leaf, value] : every_leaf()) {
    const tensor whole = eval(value);
    for (const view_of_both& view : every_view()) {
      SCOPED_TRACE(leaf + ": " + view.name);
      const expr viewed = view.lazy(value);
      const tensor wanted = view.eager(whole);
      ASSERT_EQ(viewed.shape(), wanted.shape());
      EXPECT_TRUE(equal_bits(eval(viewed), wanted));
      EXPECT_TRUE(equal_bits(eval(viewed + viewed), eval(expr(wanted) + expr(wanted))));
      if (viewed.size() > 0) {
        EXPECT_TRUE(array_equal(sum(viewed), sum(expr(wanted))));
      }
      EXPECT_GE(explain(viewed).passes, 1);
    }
  }
}

TEST(ExprViews, OfTensorsCopyNothing) {
  const tensor x = tensor::zeros({4, 6, 5}, dtype::int32);
  for (const expr& viewed : {expr(x).unfold(1, 3, 2), expr(x).diagonal(), expr(x).view({24, 5})}) {
    EXPECT_EQ(explain(viewed + 1).staged_bytes_max, 0u);
    EXPECT_EQ(explain(viewed + 1).passes, 1);
  }
}

TEST(ExprViews, ViewRefusesWhatReshapeComputes) {
  const expr turned = expr(tensor::zeros({4, 6}, dtype::int32)).swapaxes(0, 1);
  EXPECT_EQ(code_of([&] { turned.view({24}); }), errc::invalid_argument);
  EXPECT_EQ(eval(turned.reshape({24})).shape(), dims{24});
  EXPECT_EQ(code_of([&] { turned.view({23}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { turned.unfold(0, 7, 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { turned.diagonal(0, 1, 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { turned.moveaxis(2, 0); }), errc::invalid_argument);
}

TEST(Stack, PutsPartsSideBySideAlongANewAxis) {
  const tensor a = tensor::of<int>({{1, 2, 3}, {4, 5, 6}});
  const std::vector<expr> parts{a, expr(a) * 10};
  EXPECT_TRUE(equal_bits(eval(stack(parts)),
                         tensor::of<int>({{{1, 2, 3}, {4, 5, 6}}, {{10, 20, 30}, {40, 50, 60}}})));
  EXPECT_TRUE(equal_bits(eval(stack(parts, -1)), tensor::of<int>({{{1, 10}, {2, 20}, {3, 30}},
                                                                  {{4, 40}, {5, 50}, {6, 60}}})));
  const std::vector<expr> unequal{a, a.narrow(0, 0, 1)};
  EXPECT_EQ(code_of([&] { stack(unequal); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { stack({}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { stack(parts, 3); }), errc::invalid_argument);
}

TEST(Creation, LikeFollowsShapeAndDtype) {
  const tensor a = tensor::zeros({2, 3}, dtype::int16);
  EXPECT_TRUE(equal_bits(eval(ones_like(a)), tensor::ones({2, 3}, dtype::int16)));
  EXPECT_TRUE(
      equal_bits(eval(zeros_like(a, dtype::float32)), tensor::zeros({2, 3}, dtype::float32)));
  EXPECT_TRUE(equal_bits(eval(full_like(a, 7)), tensor::full({2, 3}, 7, dtype::int16)));
  EXPECT_TRUE(equal_bits(eval(ones({3})), tensor::of<double>({1, 1, 1})));
  EXPECT_TRUE(equal_bits(eval(zeros({2}, dtype::boolean)), tensor::of<bool>({false, false})));
}

}  // namespace
}  // namespace shale
