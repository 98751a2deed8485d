// Tests that the bits of a reduction depend on the layouts of its own operands alone: neither on
// what is computed beside it, nor on the budget, nor on where its operands lie. A result is
// compared with that of the same reduction alone, or with all operands in memory. Products of
// float64 are not compensated, so nearly every change of their order changes their last bits.
#include "ops/evaluation/fold_order.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/graph/node_access.hpp"
#include "shale/evaluate.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/random.hpp"
#include "shale/tile_source.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::random_choices;

constexpr float huge = 9007199254740992.0F;  // 2^53: adding 1 to it changes nothing

// A number from 1/2 to 2, with any bits. Products of many of them stay in the range of float64.
double factor(random_choices& choose) {
  const double above = 1 + std::ldexp(static_cast<double>(choose(0, (index_t{1} << 52) - 1)), -52);
  return choose(0, 1) ? above : 1 / above;
}

void fill(tensor& values, random_choices& choose) {
  for (double& value : values.elements<double>()) value = factor(choose);
}

// A view of `whole`, whose axes are perhaps in another order, or reversed. `order` says where in
// `whole` each axis of the view lies.
tensor viewed(const tensor& whole, const dims& order, random_choices& choose) {
  tensor result = whole.permute_dims(order);
  for (index_t axis = 0; axis < result.rank(); ++axis)
    if (choose(0, 3) == 0) result = result.flip({axis});
  return result;
}

dims random_order(index_t rank, random_choices& choose) {
  dims order;
  for (index_t axis = 0; axis < rank; ++axis) order.push_back(axis);
  for (index_t axis = rank - 1; axis > 0; --axis) std::swap(order[axis], order[choose(0, axis)]);
  return order;
}

// The shape of which `shape` is the view that `order` describes.
dims shape_before(const dims& shape, const dims& order) {
  dims whole = shape;
  for (index_t axis = 0; axis < shape.size(); ++axis) whole[order[axis]] = shape[axis];
  return whole;
}

// A tensor of that shape with a random layout, sometimes broadcast along an axis.
tensor random_factors(const dims& shape, random_choices& choose) {
  const dims order = random_order(shape.size(), choose);
  dims whole = shape_before(shape, order);
  const index_t repeated = choose(0, 3) == 0 ? choose(0, shape.size() - 1) : -1;
  if (repeated >= 0) whole[order[repeated]] = 1;
  tensor values = tensor::empty(whole, dtype::float64);
  fill(values, choose);
  return viewed(values, order, choose).broadcast_to(shape);
}

dims random_axes(index_t rank, random_choices& choose) {
  dims axes;
  for (index_t axis = 0; axis < rank; ++axis)
    if (choose(0, 1)) axes.push_back(axis);
  return axes;
}

// A reduction of values that are computed from some of `leaves`, or of one of these.
expr random_reduction(const std::vector<expr>& leaves, const dims& axes, random_choices& choose) {
  const auto leaf = [&] {
    return leaves[static_cast<std::size_t>(choose(0, static_cast<index_t>(leaves.size()) - 1))];
  };
  expr value = leaf();
  for (index_t steps = choose(0, 3); steps > 0; --steps) {
    switch (choose(0, 3)) {
      case 0:
        value = value * leaf();
        break;
      case 1:
        value = value / leaf();
        break;
      case 2:
        value = sqrt(value);
        break;
      default:
        value = where(value > 1, value, leaf());
    }
  }
  switch (choose(0, 5)) {
    case 0:
      return max(value, axes);
    case 1:
      return var(value, axes);
    case 2:
      return axes.size() == 1 ? argmax(value, axes[0]) : sum(value, axes);
    default:
      return prod(value, axes);
  }
}

void expect_bits_as_alone(const std::vector<expr>& together) {
  const std::vector<tensor> got = eval_all(together);
  for (std::size_t k = 0; k < together.size(); ++k)
    ASSERT_TRUE(equal_bits(got[k], eval_all({&together[k], 1})[0])) << "reduction " << k;
}

// ---- beside others -----------------------------------------------------------------------------

// Alone the rows are added one after the other. In the blocks of a computed value they would be cut
// after row 19.
TEST(FoldOrder, OfElementsIsThatWithoutComputedValues) {
  const tensor a = tensor::zeros({24, 300}, dtype::float32);
  auto* const column = a.elements<float>().data();
  column[0] = huge;
  for (const index_t row : {20, 21, 22}) column[row * 300] = 1;
  column[23 * 300] = -huge;
  expect_bits_as_alone({sum(a, dims{0}), sum(expr(a) * a, dims{0})});
  expect_bits_as_alone({sum(expr(a) * a, dims{0}), sum(a, dims{0}), max(a, dims{0})});
}

TEST(FoldOrder, IsThatWithoutOperandsInAnotherOrder) {
  random_choices choose(1);
  const tensor a = tensor::zeros({300, 300}, dtype::float32);
  auto* const values = a.elements<float>().data();
  values[0] = huge;
  values[1] = 1;
  values[32] = -huge;
  expect_bits_as_alone({sum(a), sum(a.swapaxes(0, 1))});
  tensor b = tensor::empty({250, 270}, dtype::float64);
  fill(b, choose);
  const expr turned = expr(b.permute_dims({1, 0}).flip({0}));
  expect_bits_as_alone({prod(turned), prod(turned.reshape({270, 250})),
                        prod(expr(b).reshape({270, 250})), argmax(turned)});
}

// Every element lies in a range of 64 KiB of its own, and a tile touches a bounded number of them.
TEST(FoldOrder, IsThatWithoutManyOtherOperands) {
  random_choices choose(2);
  constexpr index_t rows = 300, step = 8192;
  const tensor all = tensor::empty({rows, step}, dtype::float64);
  std::vector<expr> columns;
  for (index_t column = 0; column < 7; ++column) {
    const tensor values = all.select(1, 1000 * column);
    for (index_t row = 0; row < rows; ++row)
      all.elements<double>()[static_cast<std::size_t>(row * step + 1000 * column)] = factor(choose);
    columns.push_back(prod(values));
  }
  expect_bits_as_alone(columns);
}

TEST(FoldOrder, IsThatWithoutValuesOfCoordinates) {
  random_choices choose(3);
  tensor values = tensor::empty({120, 90}, dtype::float64);
  fill(values, choose);
  const expr turned = expr(values.swapaxes(0, 1));
  generator numbers(5);
  const expr computed = turned + uniform(numbers, turned.shape()) / 100000;
  expect_bits_as_alone({prod(computed), prod(turned), prod(computed * turned)});
}

// Two long computations of wide values might need smaller blocks together, so they have a pass
// each. One more pass computes the output.
TEST(FoldOrder, IsThatOfBlocksWithEnoughScratchMemory) {
  const auto passes_of = [](dtype type) {
    const expr x(tensor::zeros({1000}, type));
    expr first = x, second = x;
    for (int step = 0; step < 40; ++step) {
      first = first * x;
      second = second + x;
    }
    return explain(sum(first) + sum(second)).passes;
  };
  EXPECT_EQ(passes_of(dtype::complex128), 3);
  EXPECT_EQ(passes_of(dtype::float32), 2);
}

TEST(FoldOrder, LetsReductionsOfEqualLayoutsShareAPass) {
  const tensor x = tensor::zeros({50, 60}, dtype::float32);
  const tensor y = tensor::zeros({50, 60}, dtype::float32);
  const auto passes_of = [](const expr& value) { return explain(value).passes; };
  EXPECT_EQ(passes_of(sum(x) + sum(expr(x) * x)), 2);
  EXPECT_EQ(passes_of(sum(x) + sum(expr(x) * y) + mean(y)), 2);
  EXPECT_EQ(passes_of(max(x) + max(expr(x.reshape({60, 50}).swapaxes(0, 1)) * x)), 2);
  EXPECT_EQ(passes_of(sum(x) + sum(x.reshape({60, 50}).swapaxes(0, 1))), 3);
  const tensor row = y.select(0, 0);
  EXPECT_EQ(passes_of(sum(x) + sum(expr(x) * row)), 3);
  EXPECT_EQ(passes_of(sum(expr(x) * row) + sum(x)), 3);
  EXPECT_EQ(passes_of(sum(expr(x) * row) + max(x)), 2);
  EXPECT_EQ(passes_of(max(expr(x) * row) + sum(x)), 3);
}

// Sums of integers have the same bits in any order.
TEST(FoldOrder, OfIntegersIsAny) {
  const auto passes_of = [](dtype type) {
    const expr x(tensor::zeros({50, 60}, type));
    const expr turned(tensor::zeros({60, 50}, type).swapaxes(0, 1));
    return explain(sum(x) + sum(turned) + prod(x * turned)).passes;
  };
  for (const dtype type : {dtype::int8, dtype::uint64, dtype::boolean})
    EXPECT_EQ(passes_of(type), 2) << name(type);
  EXPECT_EQ(passes_of(dtype::float32), 4);
  const expr x(tensor::zeros({50, 60}, dtype::int32));
  const expr turned(tensor::zeros({60, 50}, dtype::int32).swapaxes(0, 1));
  EXPECT_EQ(explain(mean(x) + mean(turned)).passes, 3) << "a mean of integers is rounded";
}

TEST(FoldOrder, OfRandomReductionsIsThatOfEachAlone) {
  executor two({.threads = 2}), one({.threads = 1});
  for (std::uint64_t seed = 0; seed < test::cases(80); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape;
    for (index_t axis = choose(1, 3); axis > 0; --axis) shape.push_back(choose(1, 60));
    std::vector<expr> leaves;
    for (index_t k = choose(1, 3); k > 0; --k) leaves.push_back(random_factors(shape, choose));
    const dims axes = random_axes(shape.size(), choose);
    std::vector<expr> together;
    for (index_t k = choose(2, 7); k > 0; --k)
      together.push_back(random_reduction(leaves, axes, choose));
    const executor::scope within(choose(0, 1) ? two : one);
    expect_bits_as_alone(together);
    if (HasFatalFailure()) return;
  }
}

// ---- under any budget --------------------------------------------------------------------------

/// A tile source over a row-major tensor.
class tiles_of final : public tile_source {
 public:
  tiles_of(const tensor& values, const dims& tile_shape)
      : values_(values), tile_shape_(tile_shape) {}

  shale::dtype dtype() const noexcept override { return values_.dtype(); }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    tensor part = values_;
    for (index_t axis = 0; axis < tile.size(); ++axis)
      part = part.narrow(axis, tile[axis] * tile_shape_[axis], into.shape()[axis]);
    const index_t last = part.rank() - 1;
    const auto from = test::positions_of(part.narrow(last, 0, 1));
    const auto to = test::positions_of(into.narrow(last, 0, 1));
    const auto item = static_cast<index_t>(part.item_bytes());
    auto* const bytes = const_cast<std::byte*>(into.storage().data());
    for (std::size_t row = 0; row < from.size(); ++row)
      for (index_t i = 0; i < part.shape()[last]; ++i)
        std::memcpy(bytes + (to[row] + i * into.strides()[last]) * item,
                    part.storage().data() + (from[row] + i) * item, part.item_bytes());
  }

 private:
  tensor values_;
  dims tile_shape_;
};

expr in_tiles(const tensor& values, const dims& tile_shape) {
  return expr(std::shared_ptr<const tile_source>(std::make_shared<tiles_of>(values, tile_shape)));
}

TEST(FoldOrder, HasEachLayoutOnce) {
  const auto described = [](const expr& value) {
    return ops::pass_of({ops::node_of(value)}, {0}, {});
  };
  const tensor x = tensor::zeros({40, 30}, dtype::float32);
  const tensor y = tensor::zeros({40, 30}, dtype::float64);
  const ops::fold_pass sums = described(sqrt(expr(x) + x.clone()) * x);
  ASSERT_EQ(sums.order().operands.size(), 1u);
  EXPECT_EQ(sums.order().operands[0].strides_bytes, (dims{120, 4}));
  EXPECT_EQ(sums.steps(), 3u);
  EXPECT_EQ(sums.item_bytes(), 4u);
  EXPECT_FALSE(sums.order().generates);
  EXPECT_EQ(sums.order(), described(x).order());
  const ops::fold_pass wider = described(expr(x) + y);
  ASSERT_EQ(wider.order().operands.size(), 2u);
  EXPECT_EQ(wider.order().operands[1].strides_bytes, (dims{240, 8}));
  EXPECT_EQ(wider.item_bytes(), 8u);
  const ops::fold_pass tiles = described(in_tiles(x, {7, 30}).flip({1}));
  EXPECT_EQ(tiles.order().operands[0].tile_shape, (dims{7, 30}));
  EXPECT_EQ(tiles.order().operands[0].step, (dims{1, -1}));
  EXPECT_TRUE(tiles.order().tile.empty());
  const tensor line = tensor::zeros({30}, dtype::float32);
  EXPECT_TRUE(described(expr(line) + arange(30)).order().generates);
}

// In tiles of 64 x 64, the last tile of 100 columns has 36.
TEST(FoldOrder, OfTilesSaysWhatTheTilesEdgesCut) {
  const auto order_of = [](const expr& value) {
    return ops::pass_of({ops::node_of(value)}, {0}, {}).order();
  };
  const auto tiles_over = [](const dims& shape) {
    return in_tiles(tensor::zeros(shape, dtype::float64), {64, 64});
  };
  const expr wide = tiles_over({130, 192});
  const expr narrow = tiles_over({64, 100});
  const auto columns = [](const expr& source, index_t start) {
    return source.narrow(0, 0, 64).narrow(1, start, 36);
  };
  const ops::fold_order first = order_of(columns(wide, 0));
  EXPECT_EQ(order_of(columns(wide, 64)), first);
  EXPECT_EQ(order_of(columns(wide, 128)), first);
  EXPECT_EQ(order_of(columns(narrow, 0)), first);
  EXPECT_NE(order_of(columns(narrow, 64)), first) << "a tile with shorter rows";
  EXPECT_NE(order_of(columns(wide, 40)), first) << "in two tiles";
  EXPECT_NE(order_of(columns(wide, 0).flip({1})), first);
  EXPECT_EQ(order_of(wide.select(0, 3)), order_of(wide.select(0, 70)));
  const expr both = wide.narrow(1, 0, 64);
  EXPECT_EQ(explain(sum(both) + sum(wide.narrow(1, 128, 64))).passes, 2);
  EXPECT_EQ(explain(sum(both) + sum(wide.narrow(1, 127, 64))).passes, 3);
}

// A tile that the edge cuts is folded as one run, and a part of a tile row by row.
TEST(FoldOrder, IsThatWithoutOtherViewsOfTiles) {
  random_choices choose(4);
  tensor values = tensor::empty({64, 100}, dtype::float64);
  tensor wider = tensor::empty({64, 128}, dtype::float64);
  fill(values, choose);
  fill(wider, choose);
  const expr tiles = in_tiles(values, {64, 64});
  const expr part = tiles.narrow(1, 0, 36);
  const expr cut = tiles.narrow(1, 64, 36);
  const expr joined = tiles.narrow(1, 40, 36);
  const expr of_another = in_tiles(wider, {64, 64}).narrow(1, 64, 36);
  expect_bits_as_alone({prod(part), prod(cut)});
  expect_bits_as_alone({prod(cut), prod(part)});
  expect_bits_as_alone({prod(joined), prod(part), prod(cut)});
  expect_bits_as_alone({prod(of_another), prod(cut), prod(joined)});
}

TEST(FoldOrder, OfRandomViewsOfTilesIsThatOfEachAlone) {
  executor two({.threads = 2}), one({.threads = 1});
  for (std::uint64_t seed = 0; seed < test::cases(40); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape, tile;
    for (index_t axis = choose(1, 3); axis > 0; --axis) {
      shape.push_back(choose(1, 40));
      tile.push_back(choose(8, 64));
    }
    std::vector<expr> leaves;
    for (index_t sources = choose(1, 2); sources > 0; --sources) {
      dims whole = shape;
      for (index_t& extent : whole) extent += choose(0, 60);
      tensor values = tensor::empty(whole, dtype::float64);
      fill(values, choose);
      const expr source = in_tiles(values, tile);
      for (index_t views = choose(1, 3); views > 0; --views) {
        expr view = source;
        for (index_t axis = 0; axis < shape.size(); ++axis) {
          view = view.narrow(axis, choose(0, whole[axis] - shape[axis]), shape[axis]);
          if (choose(0, 5) == 0) view = view.flip({axis});
        }
        leaves.push_back(view);
      }
    }
    const dims axes = random_axes(shape.size(), choose);
    std::vector<expr> together;
    for (index_t k = choose(2, 5); k > 0; --k)
      together.push_back(random_reduction(leaves, axes, choose));
    const executor::scope within(choose(0, 1) ? two : one);
    expect_bits_as_alone(together);
    if (HasFatalFailure()) return;
  }
}

class FoldOrderOfFiles : public testing::Test {
 protected:
  // The same elements, in a mapped file.
  tensor mapped(const tensor& values) {
    const std::string path = directory_ / std::to_string(files_++);
    {
      storage made = create_file(path, values.size_bytes());
      std::memcpy(made.data(), values.storage().data(), values.size_bytes());
    }
    return tensor(map_file(path, {.access = access::read_write}), values.dtype(),
                  layout(values.shape()));
  }

 private:
  test::scratch_directory directory_;
  int files_ = 0;
};

TEST_F(FoldOrderOfFiles, DoesNotDependOnCopies) {
  constexpr index_t side = 2048;
  const tensor values = tensor::zeros({side, side}, dtype::float32);
  auto* const row = values.elements<float>().data();
  row[0] = huge;
  row[1] = 1;
  row[2] = -huge;
  const expr turned = expr(mapped(values).swapaxes(0, 1));
  const expr tiles = in_tiles(tensor::zeros({side, side}, dtype::float32), {256, 256});
  executor large({.threads = 2, .memory_bytes = std::size_t{1} << 30});
  executor small({.threads = 2, .memory_bytes = std::size_t{16} << 20});
  for (const expr& root : {sum(turned + tiles), sum(tiles + turned), sum(tiles * 2 - turned)})
    EXPECT_TRUE(equal_bits(test::run_on(large, [&] { return eval(root); }),
                           test::run_on(small, [&] { return eval(root); })));
  EXPECT_EQ(large.statistics().mapped_tiles, 0u);
  EXPECT_GT(small.statistics().mapped_tiles, 0u);
}

// The bits are those of a tensor in memory that has the layout of the file.
TEST_F(FoldOrderOfFiles, IsThatOfTensorsBesideTiles) {
  executor large({.threads = 1, .memory_bytes = std::size_t{1} << 30});
  std::uint64_t copied = 0;
  for (std::uint64_t seed = 0; seed < test::cases(40); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape{choose(60, 110), choose(60, 110)};
    if (choose(0, 1)) shape.push_back(choose(1, 9));
    const dims order = random_order(shape.size(), choose);
    tensor values = tensor::empty(shape_before(shape, order), dtype::float64);
    tensor behind = tensor::empty(shape, dtype::float64);
    fill(values, choose);
    fill(behind, choose);
    dims tile = shape;
    for (index_t& extent : tile)
      if (choose(0, 3)) extent = choose(extent / 16 + 1, extent / 4 + 1);
    const expr tiles = in_tiles(behind, tile);
    const dims axes = random_axes(shape.size(), choose);
    const index_t scanned = choose(0, shape.size() - 1);
    const auto results = [&, views = choose(0, 1 << 30)](const tensor& whole) {
      random_choices same(static_cast<std::uint64_t>(views));
      const expr seen = expr(viewed(whole, order, same));
      const expr value = same(0, 1) ? tiles * seen : seen / tiles;
      return std::vector<tensor>{eval(prod(value, axes)), eval(prod(sqrt(value) * seen, axes)),
                                 eval(cumulative_prod(value, scanned))};
    };
    const tensor file = mapped(values);
    const auto expected = test::run_on(large, [&] { return results(values); });
    for (const std::size_t budget : {std::size_t{1} << 30, values.size_bytes()}) {
      executor some({.threads = 3, .memory_bytes = budget});
      const auto got = test::run_on(some, [&] { return results(file); });
      for (std::size_t k = 0; k < got.size(); ++k)
        ASSERT_TRUE(equal_bits(got[k], expected[k])) << "result " << k << " within " << budget;
      copied += some.statistics().mapped_tiles;
    }
  }
  EXPECT_GT(copied, 0u);
}

}  // namespace
}  // namespace shale
