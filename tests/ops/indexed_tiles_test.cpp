// Tests reads of single elements of tile sources: which tiles are loaded, how often and in which
// order, and the elements. Elements are their own row-major numbers, so the expected ones say which
// tiles they lie in. What `take` and its kind read from tensors is the oracle for elements.
#include "ops/leaves/indexed_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/grid.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/masks.hpp"
#include "shale/take.hpp"
#include "shale/tile_source.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::as_list;
using test::code_of;
using test::coordinates_of;
using test::elements_of;
using test::index_list;
using test::random_choices;
using test::text_of;

// Row-major numbers in tiles. It records which tiles are loaded; one of them may be damaged.
class numbered_tiles final : public tile_source {
 public:
  numbered_tiles(const dims& shape, const dims& tile_shape)
      : shape_(shape), tile_shape_(tile_shape) {}
  shale::dtype dtype() const noexcept override { return dtype::int64; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    {
      const std::lock_guard lock(mutex_);
      loads_.push_back(as_list(tile));
    }
    if (as_list(tile) == damaged) throw error(errc::corrupt, "this tile is lost");
    const index_list extents = as_list(into.shape());
    for (index_t k = 0; k < into.size(); ++k) {
      index_list at = coordinates_of(k, extents);
      index_t position = into.offset();
      for (std::size_t axis = 0; axis < at.size(); ++axis) {
        const auto number = static_cast<index_t>(axis);
        position += at[axis] * into.stride(number);
        at[axis] += tile[number] * tile_shape_[number];
      }
      reinterpret_cast<std::int64_t*>(into.storage().data())[position] =
          static_cast<std::int64_t>(test::number_of(at, as_list(shape_)));
    }
  }

  // The tiles that were loaded since the last call, in order.
  std::vector<index_list> taken_loads() const {
    const std::lock_guard lock(mutex_);
    return std::exchange(loads_, {});
  }

  index_list damaged = {-1};

 private:
  dims shape_;
  dims tile_shape_;
  mutable std::mutex mutex_;
  mutable std::vector<index_list> loads_;
};

tensor numbers(const dims& shape) { return eval(arange(element_count(shape)).reshape(shape)); }

tensor index_tensor(const dims& shape, const std::function<index_t()>& next) {
  const tensor made = tensor::empty(shape, dtype::int64);
  for (std::int64_t& index : made.elements<std::int64_t>()) index = next();
  return made;
}

// The tiles that hold these numbers.
std::set<index_list> tiles_of_numbers(const std::vector<std::int64_t>& values,
                                      const tile_source& source) {
  std::set<index_list> tiles;
  for (const std::int64_t value : values) {
    index_list at = coordinates_of(value, as_list(source.shape()));
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      at[axis] /= source.tile_shape()[static_cast<index_t>(axis)];
    tiles.insert(at);
  }
  return tiles;
}

using reading = std::function<expr(const expr&)>;

// A view of an expression of that shape, which has at least one axis.
reading random_view(random_choices& choose, const dims& shape) {
  const index_t axis = choose(0, shape.size() - 1);
  const index_t extent = shape[axis];
  const index_t start = choose(0, std::max<index_t>(extent - 1, 0));
  const index_t step = choose(2, 3);
  switch (choose(0, 6)) {
    case 0:
      return [=](const expr& x) { return x.narrow(axis, extent / 4, extent - extent / 2); };
    case 1:
      return [=](const expr& x) { return x.flip({axis}); };
    case 2:
      return [](const expr& x) {
        return x.permute_dims([&] {
          dims axes;
          for (index_t k = x.rank(); k-- > 0;) axes.push_back(k);
          return axes;
        }());
      };
    case 3:
      return [=](const expr& x) {
        return x.index({slice{.start = start, .step = step}, ellipsis});
      };
    case 4:
      return [=](const expr& x) { return x.index({ellipsis, slice{.step = -step}}); };
    case 5:
      return [](const expr& x) {
        dims wider = x.shape();
        wider.insert(0, 2);
        return x.expand_dims(0).broadcast_to(wider);
      };
    default:
      return [](const expr& x) { return x; };
  }
}

// Some elements of an operand of that shape, none of whose axes is empty.
reading random_reading(random_choices& choose, const dims& shape) {
  const index_t rank = shape.size();
  const index_t axis = choose(0, rank - 1);
  const auto any = [&choose](index_t extent) {
    return [&choose, extent] { return choose(-extent, extent - 1); };
  };
  switch (choose(0, 4)) {
    case 0: {
      const dims some = choose(0, 1) == 0 ? dims{choose(0, 3)} : dims{choose(1, 2), choose(1, 2)};
      const tensor indices = index_tensor(some, any(shape[axis]));
      return [=](const expr& x) { return take(x, indices, axis); };
    }
    case 1: {
      const tensor indices = index_tensor({choose(1, 5)}, any(element_count(shape)));
      return [=](const expr& x) { return take(x, indices); };
    }
    case 2: {
      dims some = shape;
      for (index_t& extent : some) extent = choose(1, extent);
      const tensor indices = index_tensor(some, any(shape[axis]));
      return [=](const expr& x) { return gather(x, axis, indices); };
    }
    case 3: {
      dims some = shape;
      some[axis] = choose(1, 2);
      if (choose(0, 1) == 0) some[choose(0, rank - 1)] = 1;
      const tensor indices = index_tensor(some, any(shape[axis]));
      return [=](const expr& x) { return take_along_axis(x, indices, axis); };
    }
    default: {
      const index_t depth = choose(1, rank), count = choose(1, 6);
      const tensor indices = tensor::empty({count, depth}, dtype::int64);
      for (index_t k = 0; k < count * depth; ++k)
        indices.elements<std::int64_t>()[static_cast<std::size_t>(k)] =
            choose(0, shape[k % depth] - 1);
      return [=](const expr& x) { return gather_nd(x, indices); };
    }
  }
}

// indexed_tiles.1, indexed_tiles.2
TEST(IndexedTiles, AreThoseWithAnElementEachOnceInOrder) {
  int sparse = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape, tile_shape;
    for (index_t axes = choose(1, 3); axes > 0; --axes) {
      shape.push_back(choose(1, 14));
      tile_shape.push_back(choose(1, 6));
    }
    const auto source = std::make_shared<numbered_tiles>(shape, tile_shape);
    const reading before = random_view(choose, shape);
    const dims seen = before(expr(numbers(shape))).shape();
    if (element_count(seen) == 0) continue;
    const reading read = random_reading(choose, seen);
    const dims result = read(before(expr(numbers(shape)))).shape();
    const reading after =
        result.empty() ? reading([](const expr& x) { return x; }) : random_view(choose, result);
    const auto all = [&](const expr& x) { return after(read(before(x))); };

    const int threads = seed % 4 == 0 ? 2 : 1;
    executor on({.threads = threads, .memory_bytes = std::size_t{1} << 20});
    const executor::scope within(on);
    const tensor wanted = eval(all(expr(numbers(shape))));
    const tensor got = eval(all(expr(source)));
    ASSERT_EQ(got.shape(), wanted.shape());
    const auto values = elements_of<std::int64_t>(wanted);
    ASSERT_EQ(elements_of<std::int64_t>(got), values);
    std::vector<index_list> loads = source->taken_loads();
    if (element_count(result) > element_count(seen)) continue;  // read as a whole
    if (threads > 1) std::sort(loads.begin(), loads.end());
    const auto tiles = tiles_of_numbers(values, *source);
    ASSERT_EQ(loads, std::vector<index_list>(tiles.begin(), tiles.end()));
    EXPECT_EQ(on.statistics().tiles_decoded, tiles.size());
    const index_t all_tiles = element_count(detail::grid_of(shape, tile_shape));
    sparse += static_cast<index_t>(tiles.size()) < all_tiles ? 1 : 0;
  }
  EXPECT_GT(sparse, 500);
}

TEST(IndexedTiles, OfRowsAndColumnsAreThoseOfTheBand) {
  const auto source = std::make_shared<numbered_tiles>(dims{100, 90}, dims{10, 30});
  const expr x(source);
  executor on({.threads = 1});
  const executor::scope within(on);
  const tensor rows = eval(take(x, tensor::of<std::int64_t>({57, 3, 51}), 0));
  EXPECT_EQ(source->taken_loads(),
            (std::vector<index_list>{{0, 0}, {0, 1}, {0, 2}, {5, 0}, {5, 1}, {5, 2}}));
  for (index_t column = 0; column < 90; ++column) {
    EXPECT_EQ(rows.at({0, column}), scalar(57 * 90 + column));
    EXPECT_EQ(rows.at({1, column}), scalar(3 * 90 + column));
    EXPECT_EQ(rows.at({2, column}), scalar(51 * 90 + column));
  }
  eval(take(x, tensor::of<std::int64_t>({-1, 60}), 1));
  EXPECT_EQ(source->taken_loads().size(), 10U);
  eval(x.index({tensor::of<std::int64_t>({57, 3}), tensor::of<std::int64_t>({0, 89})}));
  EXPECT_EQ(source->taken_loads(), (std::vector<index_list>{{0, 2}, {5, 0}}));
  // A part of the result needs the tiles of that part.
  eval(take(x, tensor::of<std::int64_t>({57, 3, 51}), 0).index({1, slice{0, 30}}) * 2);
  EXPECT_EQ(source->taken_loads(), (std::vector<index_list>{{0, 0}}));
}

TEST(IndexedTiles, OfMasksAreThoseWithATrueElement) {
  const auto source = std::make_shared<numbered_tiles>(dims{60, 40}, dims{10, 10});
  const expr x(source);
  const tensor mask = tensor::zeros({60, 40}, dtype::boolean);
  for (const auto& [row, column] : {std::pair{5, 7}, std::pair{5, 39}, std::pair{58, 7}})
    mask.elements<bool>()[static_cast<std::size_t>(row * 40 + column)] = true;
  const std::vector<std::int64_t> wanted{207, 239, 2327};
  const std::vector<index_list> tiles{{0, 0}, {0, 3}, {5, 0}};
  // Either the mask is held as a whole, or it is read slab by slab.
  for (const std::size_t budget : {std::size_t{1} << 20, std::size_t{4} << 10}) {
    SCOPED_TRACE(budget);
    executor on({.threads = 1, .memory_bytes = budget});
    const executor::scope within(on);
    EXPECT_EQ(elements_of<std::int64_t>(masked_select(x, mask)), wanted);
    EXPECT_EQ(source->taken_loads(), tiles);
    EXPECT_EQ(elements_of<std::int64_t>(eval(x.index({mask}))), wanted);
    EXPECT_EQ(source->taken_loads(), tiles);
    EXPECT_EQ(masked_select(x, tensor::zeros({60, 40}, dtype::boolean)).size(), 0);
    EXPECT_TRUE(source->taken_loads().empty());
  }
  // Most elements are read with all tiles.
  EXPECT_EQ(elements_of<std::int64_t>(masked_select(x, tensor::ones({60, 40}, dtype::boolean))),
            elements_of<std::int64_t>(numbers({60, 40})));
  EXPECT_EQ(source->taken_loads().size(), 24U);
}

// A part has 4,096 points here.
TEST(IndexedTiles, AreLoadedOnceForEachPartOfThePoints) {
  constexpr index_t count = 10'000;
  const auto source = std::make_shared<numbered_tiles>(dims{20'000}, dims{500});
  random_choices choose(3);
  const tensor indices = index_tensor({count}, [&] { return choose(-20'000, 19'999); });
  executor on({.threads = 2, .memory_bytes = std::size_t{256} << 10});
  const executor::scope within(on);
  const tensor got = eval(take(expr(source), indices, 0));
  for (index_t k = 0; k < count; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const std::int64_t index = indices.elements<std::int64_t>()[at];
    ASSERT_EQ(got.elements<std::int64_t>()[at], index < 0 ? index + 20'000 : index) << k;
  }
  const auto loads = source->taken_loads();
  EXPECT_EQ(loads.size(), 3U * 40);
  EXPECT_EQ(std::set<index_list>(loads.begin(), loads.end()).size(), 40U);
  EXPECT_LE(on.statistics().scratch_bytes_peak, 4096U * 56);
}

TEST(IndexedTiles, WhoseElementsAreNotReadMayBeDamaged) {
  const auto source = std::make_shared<numbered_tiles>(dims{40}, dims{10});
  source->damaged = {2};
  const expr x(source);
  EXPECT_EQ(elements_of<std::int64_t>(eval(take(x, tensor::of<std::int64_t>({5, 39, 5}), 0))),
            (std::vector<std::int64_t>{5, 39, 5}));
  EXPECT_EQ(code_of([&] { eval(take(x, tensor::of<std::int64_t>({5, 21}), 0)); }), errc::corrupt);
}

// indexed_tiles.3
TEST(IndexedTiles, RefuseIndicesThatAreOutOfRange) {
  const auto source = std::make_shared<numbered_tiles>(dims{4, 6}, dims{2, 2});
  const expr x(source);
  const auto refused = [](const expr& value) { return text_of([&] { eval(value); }); };
  const tensor rows = tensor::of<std::int64_t>({0, 4});
  EXPECT_NE(refused(take(x, rows, 0)).find("index 4 along axis 0, which has 4 positions"),
            std::string::npos);
  EXPECT_NE(refused(take(x, tensor::of<std::int8_t>({-7}), 1)).find("index -7 along axis 1"),
            std::string::npos);
  EXPECT_NE(refused(take(x, tensor::of<std::int64_t>({24})))
                .find("index 24 along axis 0, which has 24 positions"),
            std::string::npos);
  EXPECT_NE(refused(x.index({1, tensor::of<std::int64_t>({6})})).find("index 6 along axis 1"),
            std::string::npos);
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  EXPECT_NE(refused(take(x, tensor::of<std::int64_t>({least}), 0)).find("out of range"),
            std::string::npos);
  EXPECT_TRUE(source->taken_loads().empty());
  // An index that the evaluation does not read is not checked.
  EXPECT_EQ(eval(take(x, rows, 0).narrow(0, 0, 1)).at({0, 5}), scalar(5));
  EXPECT_EQ(eval(take(x, rows, 0).index({1, slice{0, 0}})).size(), 0);
}

TEST(IndexedTiles, AreReadIntoAnyOutput) {
  const auto source = std::make_shared<numbered_tiles>(dims{50}, dims{7});
  const expr x(source);
  // The output has the bytes of the indices.
  const tensor indices = tensor::of<std::int64_t>({49, 0, 3, -2});
  eval_into(indices, take(x, indices, 0));
  EXPECT_EQ(elements_of<std::int64_t>(indices), (std::vector<std::int64_t>{49, 0, 3, 48}));
  eval_into(indices.flip({0}), take(x, indices, 0));
  EXPECT_EQ(elements_of<std::int64_t>(indices), (std::vector<std::int64_t>{48, 3, 0, 49}));
  const tensor wide = tensor::zeros({3, 8}, dtype::int64);
  const tensor column = wide.select(0, 1).sliced(0, {.start = 1, .step = 2});
  const std::uint64_t version = wide.storage().version();
  eval_into(column, take(x, tensor::of<std::int64_t>({8, 6, 4, 2}), 0));
  EXPECT_GT(wide.storage().version(), version);
  EXPECT_EQ(elements_of<std::int64_t>(wide.select(0, 1)),
            (std::vector<std::int64_t>{0, 8, 0, 6, 0, 4, 0, 2}));
  EXPECT_EQ(elements_of<std::int64_t>(wide.select(0, 0)), std::vector<std::int64_t>(8, 0));
  const tensor fractions = tensor::empty({4}, dtype::float64);
  eval_into(fractions, take(x, tensor::of<std::int64_t>({8, 6, 4, 2}), 0));
  EXPECT_EQ(elements_of<double>(fractions), (std::vector<double>{8, 6, 4, 2}));
  const tensor constant(wide.storage().as_read_only(), dtype::int64, layout({4}));
  EXPECT_EQ(code_of([&] {
              eval_into(constant, take(x, tensor::of<std::int64_t>({1, 1, 1, 1}), 0));
            }),
            errc::access_denied);
}

// The first part of the points is stored where the last one has its indices.
TEST(IndexedTiles, MayReplaceTheirIndices) {
  constexpr index_t count = 10'000;
  const auto source = std::make_shared<numbered_tiles>(dims{20'000}, dims{500});
  random_choices choose(5);
  const tensor indices = index_tensor({count}, [&] { return choose(0, 19'999); });
  auto wanted = elements_of<std::int64_t>(indices);
  std::reverse(wanted.begin(), wanted.end());
  executor on({.threads = 2, .memory_bytes = std::size_t{256} << 10});
  const executor::scope within(on);
  eval_into(indices.flip({0}), take(expr(source), indices, 0));
  EXPECT_EQ(elements_of<std::int64_t>(indices), wanted);
}

// The operand is not held, and plans count no more tiles than there are elements.
TEST(IndexedTiles, ArePlannedByTheirLargestNumber) {
  const auto source = std::make_shared<numbered_tiles>(dims{1000, 1000}, dims{100, 100});
  const expr x(source);
  const evaluation_plan rows = explain(take(x, tensor::of<std::int64_t>({5, 6}), 0));
  EXPECT_EQ(rows.tiles_decoded, 20U);
  EXPECT_EQ(rows.bytes_read, 20U * 100 * 100 * 8);
  EXPECT_EQ(rows.staged_bytes_max, 0U);
  EXPECT_NE(rows.text.find("in 20 tiles"), std::string::npos) << rows.text;
  const evaluation_plan many = explain(sum(take(x, tensor::zeros({1000}, dtype::int64), 0)));
  EXPECT_EQ(many.tiles_decoded, 100U);
  // Rows that are far too long to be read.
  const auto endless = std::make_shared<numbered_tiles>(dims{4, index_t{1} << 50}, dims{2, 8});
  EXPECT_EQ(explain(take(expr(endless), tensor::of<std::int64_t>({3}), 0)).tiles_decoded,
            std::uint64_t{1} << 47);
  // A result that is larger than its operand is not held.
  const evaluation_plan longer = explain(take(x, tensor::zeros({5000}, dtype::int64), 0));
  EXPECT_EQ(longer.staged_bytes_max, 8U * 1000 * 1000);
  EXPECT_TRUE(source->taken_loads().empty());
}

// Cancels the executor at its first report.
class cancelling_sink final : public progress_sink {
 public:
  void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override {
    EXPECT_LE(done_bytes, total_bytes);
    ++reports;
    if (to_cancel != nullptr) to_cancel->cancel();
  }
  executor* to_cancel = nullptr;
  int reports = 0;
};

TEST(IndexedTiles, AreReportedAndCanBeCancelled) {
  const auto source = std::make_shared<numbered_tiles>(dims{4000}, dims{10});
  const expr x(source);
  cancelling_sink sink;
  executor on({.threads = 1, .progress = &sink});
  const executor::scope within(on);
  const expr some = take(x, eval(arange(400) * 10), 0);
  sink.reports = 0;
  sink.to_cancel = &on;
  EXPECT_EQ(code_of([&] { eval(some); }), errc::cancelled);
  EXPECT_EQ(sink.reports, 1);
  EXPECT_LT(source->taken_loads().size(), 10U);
  on.resume();
  sink.to_cancel = nullptr;
  EXPECT_EQ(elements_of<std::int64_t>(eval(some)),
            elements_of<std::int64_t>(eval(arange(400) * 10)));
  EXPECT_EQ(source->taken_loads().size(), 400U);
}

// One result that several expressions read.
TEST(IndexedTiles, AreLoadedOnceForAllReadersOfAResult) {
  const auto source = std::make_shared<numbered_tiles>(dims{30, 30}, dims{10, 10});
  const expr x(source);
  const expr rows = take(x, tensor::of<std::int64_t>({3, 25}), 0);
  const tensor got = eval(rows + rows.flip({0}) - mean(rows, dims{1}, keepdims::yes));
  EXPECT_EQ(source->taken_loads().size(), 6U);
  for (index_t column = 0; column < 30; ++column)
    EXPECT_EQ(got.at({0, column}),
              scalar(28.0 * 30 + 2.0 * static_cast<double>(column) - (3 * 30 + 14.5)));
}

// Tiles that are longer than the source, and a source with a huge number of tiles.
TEST(IndexedTiles, MayHaveAnyExtents) {
  constexpr index_t long_extent = index_t{1} << 62;
  const auto wide = std::make_shared<numbered_tiles>(dims{3, 4}, dims{long_extent, long_extent});
  const expr x(wide);
  EXPECT_EQ(elements_of<std::int64_t>(
                eval(gather_nd(x, tensor::of<std::int64_t>({2, 3, 0, 1}).view({2, 2})))),
            (std::vector<std::int64_t>{11, 1}));
  constexpr index_t length = index_t{1} << 58;
  const auto long_source = std::make_shared<numbered_tiles>(dims{length}, dims{2});
  EXPECT_EQ(elements_of<std::int64_t>(
                eval(take(expr(long_source), tensor::of<std::int64_t>({-1, length / 2, 7}), 0))),
            (std::vector<std::int64_t>{length - 1, length / 2, 7}));
  EXPECT_EQ(long_source->taken_loads().size(), 3U);
}

}  // namespace
}  // namespace shale
