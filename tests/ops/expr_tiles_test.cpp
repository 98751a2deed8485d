// Tests expressions that read from and write to tile sources.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "parallel/sources/tiles_of_call.hpp"
#include "shale/error.hpp"
#include "shale/functions.hpp"
#include "shale/memory_pool.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;
using test::random_tensor;

/// A tile source over a tensor in memory. It counts its loads, and fails if the test wants it.
class tiled final : public tile_source {
 public:
  tiled(tensor values, const dims& tile_shape)
      : values_(std::move(values)), tile_shape_(tile_shape) {}

  shale::dtype dtype() const noexcept override { return values_.dtype(); }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  bool writable() const noexcept override { return true; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }

  void load(const dims& tile, const tensor& into) const override {
    ++loads;
    if (tile == failing) throw error(errc::corrupt, "checksum mismatch");
    const tensor source = part(tile);
    ASSERT_EQ(into.shape(), source.shape());
    copy(source, into);
    const std::lock_guard lock(mutex_);
    ++loaded[test::as_list(tile)];
  }
  void store(const dims& tile, const tensor& source) override {
    ++stores;
    if (tile == failing) throw error(errc::out_of_space, "full");
    ASSERT_EQ(source.shape(), part(tile).shape());
    copy(source, part(tile));
  }

  const tensor& values() const { return values_; }
  int most_loads_of_a_tile() const {
    int most = 0;
    for (const auto& [tile, count] : loaded) most = std::max(most, count);
    return most;
  }

  mutable std::atomic<int> loads = 0;
  std::atomic<int> stores = 0;
  mutable std::map<test::index_list, int> loaded;
  dims failing = {-1};

 private:
  tensor part(const dims& tile) const {
    tensor result = values_;
    for (index_t axis = 0; axis < tile.size(); ++axis) {
      const index_t start = tile[axis] * tile_shape_[axis];
      EXPECT_LT(start, values_.shape()[axis]);
      result =
          result.narrow(axis, start, std::min(tile_shape_[axis], values_.shape()[axis] - start));
    }
    return result;
  }
  static void copy(const tensor& from, const tensor& to) {
    const auto source = test::positions_of(from), target = test::positions_of(to);
    const auto item = static_cast<index_t>(from.item_bytes());
    auto* bytes = const_cast<std::byte*>(to.storage().data());
    for (std::size_t i = 0; i < source.size(); ++i)
      std::memcpy(bytes + target[i] * item, from.storage().data() + source[i] * item,
                  from.item_bytes());
  }

  tensor values_;
  dims tile_shape_;
  mutable std::mutex mutex_;
};

dims random_tile(random_choices& choose, const dims& shape) {
  dims tile = shape;
  for (auto& extent : tile) extent = choose(1, std::max<index_t>(extent, 1) + 1);
  return tile;
}

// Axes that no source moves along are cut, so that a unit fits in memory.
TEST(ExprTiles, SourcesAreRepeatedAlongLongAxes) {
  executor tiny({.threads = 2, .memory_bytes = 1 << 16});
  const executor::scope within(tiny);
  random_choices choose(5);
  const tensor a = random_tensor<std::int32_t>(choose, {6, 7});
  const auto source = std::make_shared<tiled>(a, dims{4, 4});
  const expr repeated =
      expr(std::shared_ptr<const tile_source>(source)).broadcast_to({100000, 6, 7});
  const expr steps = arange(100000).reshape({100000, 1, 1});
  const tensor steps_sum = tensor::of({std::int64_t{100000} * 99999 / 2});
  const tensor got = eval(sum(repeated * steps, dims{0}));
  EXPECT_EQ(elements_of<std::int64_t>(got), elements_of<std::int64_t>(eval(expr(a) * steps_sum)));
  const tensor maxima = eval(max(repeated, dims{1, 2}));
  EXPECT_EQ(elements_of<std::int32_t>(maxima),
            std::vector<std::int32_t>(100000, elements_of<std::int32_t>(eval(max(expr(a))))[0]));
}

// No unit is larger than the tiles that it is cut from, in any order of operands.
TEST(ExprTiles, SourcesOfFewerAxesDoNotStopTheCut) {
  memory_pool little({.limit_bytes = std::size_t{1} << 20});
  executor one({.threads = 1, .memory_bytes = 1 << 16, .pool = &little});
  const executor::scope within(one);
  random_choices choose(6);
  const tensor a = random_tensor<std::int32_t>(choose, {8192, 64});  // 2 MiB
  const tensor b = random_tensor<std::int32_t>(choose, {64});
  const auto large = std::make_shared<tiled>(a, dims{64, 64});
  const auto row = std::make_shared<tiled>(b, dims{64});
  const expr left{std::shared_ptr<const tile_source>(large)};
  const expr right{std::shared_ptr<const tile_source>(row)};
  for (const expr& product : {left * right, right * left}) {
    const tensor got = eval(sum(product));
    EXPECT_TRUE(equal_bits(got, eval(sum(expr(a) * b))));
    EXPECT_EQ(large->loads.exchange(0), 128);
  }
}

/// Two sources of one tile each, along different axes of their product.
struct crossed_sources {
  explicit crossed_sources(const tensor& a, const tensor& b)
      : rows(std::make_shared<tiled>(a, a.shape())),
        columns(std::make_shared<tiled>(b, b.shape())) {}

  expr product() const { return expr(rows).expand_dims(1) * expr(columns).expand_dims(0); }

  std::shared_ptr<tiled> rows, columns;
};

TEST(ExprTiles, SourcesAlongDifferentAxesAreMultipliedInManyUnits) {
  executor two({.threads = 2, .memory_bytes = std::size_t{16} << 20});
  const executor::scope within(two);
  random_choices choose(8);
  const tensor a = random_tensor<std::int32_t>(choose, {3000});
  const tensor b = random_tensor<std::int32_t>(choose, {3000});
  const crossed_sources sources(a, b);
  std::int64_t expected = 0;
  for (const std::int32_t x : elements_of<std::int32_t>(a))
    for (const std::int32_t y : elements_of<std::int32_t>(b))
      expected +=
          static_cast<std::int32_t>(static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(y));
  EXPECT_EQ(eval(sum(sources.product())).item(), scalar(expected));
  EXPECT_GE(two.statistics().tiles, 9U) << "units of at most 2^20 of the 9,000,000 elements";
  EXPECT_EQ(sources.rows->loads, 1);
  EXPECT_EQ(sources.columns->loads, 1);
}

TEST(ExprTiles, ProductsOfSourcesReportTheirProgress) {
  struct cancelling final : progress_sink {
    void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override {
      if (on->cancelled()) return;
      done = done_bytes;
      total = total_bytes;
      on->cancel();
    }
    executor* on = nullptr;
    std::uint64_t done = 0, total = 0;
  } sink;
  executor one({.threads = 1, .progress = &sink});
  sink.on = &one;
  const executor::scope within(one);
  const tensor values = tensor::zeros({3000}, dtype::float32);
  const crossed_sources sources(values, values);
  EXPECT_EQ(code_of([&] { eval(sum(sources.product())); }), errc::cancelled);
  EXPECT_GT(sink.done, 0U);
  EXPECT_LT(sink.done, sink.total / 4);
}

// way.1
TEST(ExprTiles, ProductsOfSourcesHaveTheSameBitsForAnyBudget) {
  const tensor values = tensor::empty({3000}, dtype::float32);
  float divisor = 0.3F;
  for (float& value : values.elements<float>()) value = 1 / (divisor += 1);
  const crossed_sources sources(values, values);
  const auto sums_on = [&](const executor_options& options) {
    executor on(options);
    const executor::scope within(on);
    return std::vector<tensor>{eval(sum(sources.product())), eval(sum(sources.product(), dims{0}))};
  };
  const std::vector<tensor> wanted = sums_on({.threads = 1});
  for (const std::size_t budget :
       {std::size_t{1} << 12, std::size_t{1} << 16, std::size_t{1} << 24})
    for (const int threads : {1, 3}) {
      const std::vector<tensor> got = sums_on({.threads = threads, .memory_bytes = budget});
      for (std::size_t k = 0; k < wanted.size(); ++k) EXPECT_TRUE(equal_bits(got[k], wanted[k]));
    }
}

/// Rank 1; elements are made when they are loaded.
class endless final : public tile_source {
 public:
  endless(index_t size, index_t tile) : shape_{size}, tile_shape_{tile} {}

  static std::int32_t element(index_t position) {
    return static_cast<std::int32_t>(position * 2654435761);
  }
  static expr over(const std::shared_ptr<endless>& source) {
    return expr(std::static_pointer_cast<const tile_source>(source));
  }

  shale::dtype dtype() const noexcept override { return shale::dtype::int32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    ++loads;
    index_t position = tile[0] * tile_shape_[0];
    for (auto& value : into.elements<std::int32_t>()) value = element(position++);
  }

  mutable std::atomic<index_t> loads = 0;

 private:
  dims shape_;
  dims tile_shape_;
};

// Only the needed tiles are loaded, and memory is small, for any operand that decides the cut.
TEST(ExprTiles, StepsGatherOnlyWhatTheyWant) {
  constexpr index_t wanted = 1 << 14, cut = 1 << 12, tile = 1024;
  memory_pool little({.limit_bytes = std::size_t{4} << 20});
  executor two({.threads = 2, .memory_bytes = std::size_t{1} << 20, .pool = &little});
  const executor::scope within(two);
  constexpr index_t steps[] = {512, 513, 4000, -512, -4000};
  for (const index_t step : std::span(steps).first(test::cases(std::size(steps)))) {
    SCOPED_TRACE(step);
    const auto source = std::make_shared<endless>((wanted - 1) * std::abs(step) + 1, tile);
    const auto other = std::make_shared<endless>(wanted, cut);
    const expr few = endless::over(source).sliced(0, {.step = step});
    ASSERT_EQ(few.size(), wanted);
    const index_t first = step > 0 ? 0 : source->shape()[0] - 1;
    std::vector<std::int32_t> expected, sums;
    index_t tiles = 0, last_tile = -1;
    for (index_t i = 0; i < wanted; ++i) {
      const index_t position = first + i * step;
      expected.push_back(endless::element(position));
      sums.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(endless::element(i)) +
                                               static_cast<std::uint32_t>(expected.back())));
      if (position / tile != last_tile) ++tiles;
      last_tile = position / tile;
    }
    // Tiles that two cuts share may be loaded once more.
    const auto expect_loads = [&] {
      const index_t loads = source->loads.exchange(0);
      EXPECT_GE(loads, tiles);
      EXPECT_LE(loads, tiles + wanted / cut);
    };
    const tensor out = tensor::empty({wanted}, dtype::int32);
    eval_into(out, endless::over(other) + few);
    EXPECT_EQ(elements_of<std::int32_t>(out), sums);
    expect_loads();
    tiled sink(out, {cut});
    eval_into(sink, few);
    EXPECT_EQ(elements_of<std::int32_t>(out), expected);
    expect_loads();
  }
}

// A view of `lazy` with `shape`, at a random position, with random steps, perhaps reversed.
expr random_view(random_choices& choose, expr lazy, const dims& shape) {
  for (index_t axis = 0; axis < lazy.rank(); ++axis) {
    const index_t room = lazy.shape()[axis];
    const index_t step = shape[axis] > 1 ? choose(1, (room - 1) / (shape[axis] - 1)) : 1;
    const index_t start = choose(0, room - (shape[axis] - 1) * step - 1);
    const index_t stop = start + (shape[axis] - 1) * step + 1;
    lazy = lazy.sliced(axis, {.start = start, .stop = stop, .step = step});
    if (choose(0, 2) == 0) lazy = lazy.flip({axis});
  }
  return lazy;
}

// The loads that the source counted, if the cache holds all tiles.
TEST(ExprTiles, PlansSayWhichTilesAreLoaded) {
  executor two({.threads = 2, .memory_bytes = std::size_t{64} << 20});
  const executor::scope within(two);
  for (std::uint64_t seed = 0; seed < test::cases(400); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape, seen;
    for (index_t axis = choose(0, 3); axis > 0; --axis) {
      shape.push_back(choose(1, 30));
      seen.push_back(choose(1, shape[shape.size() - 1]));
    }
    const auto source =
        std::make_shared<tiled>(random_tensor<float>(choose, shape), random_tile(choose, shape));
    const expr all{std::shared_ptr<const tile_source>(source)};
    expr value = random_view(choose, all, seen);
    for (index_t more = choose(0, 2); more > 0; --more)
      value = value + random_view(choose, all, seen);
    const auto planned = explain(value);
    const auto before = two.statistics();
    eval(value);
    std::uint64_t bytes = 0;
    for (const auto& [tile, count] : source->loaded)
      bytes +=
          element_count(tile_region(shape, source->tile_shape(), dims(tile)).shape) * sizeof(float);
    EXPECT_EQ(planned.tiles_decoded, source->loaded.size());
    EXPECT_EQ(planned.bytes_read, bytes) << planned.text;
    const auto after = two.statistics();
    EXPECT_EQ(after.tiles_decoded - before.tiles_decoded, source->loaded.size());
    EXPECT_EQ(after.bytes_read - before.bytes_read, bytes);
    EXPECT_EQ(after.stored_bytes_read - before.stored_bytes_read, source->loaded.size());
  }
}

// The expression over a source equals the same over the tensor that it serves.
TEST(ExprTiles, SourcesReadAsTheTensorsBehindThem) {
  executor two({.threads = 2}), tiny({.threads = 3, .memory_bytes = 2000});
  for (std::uint64_t seed = 0; seed < test::cases(1500); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 9});
    const tensor a = random_tensor<std::int32_t>(choose, shape);
    const tensor b = random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, shape));
    const auto source = std::make_shared<tiled>(a, random_tile(choose, a.shape()));
    const auto other = std::make_shared<tiled>(b, random_tile(choose, b.shape()));
    // Do the same steps on both.
    const auto build = [&, picks = random_choices(seed + 1)](const expr& left,
                                                             const expr& right) mutable {
      expr value = left;
      for (index_t steps = picks(0, 4); steps > 0; --steps) {
        const index_t rank = value.rank();
        if (rank == 0) break;
        const index_t axis = picks(0, rank - 1), n = value.shape()[axis];
        switch (picks(0, 6)) {
          case 0:
            value = value.narrow(axis, n / 3, n - n / 3);
            break;
          case 1:
            value = value.sliced(axis, {.step = -2});
            break;
          case 2:
            value = value.flip({axis});
            break;
          case 3:
            value = value.swapaxes(axis, 0);
            break;
          case 4:
            if (n > 0) value = value.select(axis, n / 2);
            break;
          case 5:
            value = value.expand_dims(axis) + 1;
            break;
          default:
            value = value * 2 - value.flip({axis});
        }
      }
      if (value.shape() == left.shape()) value = value + right;
      switch (picks(0, 6)) {
        case 5:
          return value.size() > 0 ? argmin(value) : value;
        case 6:
          return value.rank() > 0 && value.size() > 0 ? argmax(value, picks(0, value.rank() - 1))
                                                      : value;
        case 0:
          return sum(value);
        case 1:
          return value.rank() > 0 ? sum(value, dims{picks(0, value.rank() - 1)}) : value;
        case 2:
          return value - sum(value, dims{}, keepdims::yes) + arange(1);
        default:
          return value;
      }
    };
    auto from_tensors = build;
    const tensor expected = eval(from_tensors(a, b));
    auto from_sources = build;
    const executor::scope within(choose(0, 1) ? two : tiny);
    const tensor got = eval(from_sources(expr(source), choose(0, 1) ? expr(other) : expr(b)));
    ASSERT_TRUE(equal_bits(got, expected));
    // Evaluate also into a source.
    const tensor sink_values =
        random_tensor<std::int64_t>(choose, expected.shape(), test::sharing::distinct);
    tiled sink(sink_values, random_tile(choose, expected.shape()));
    auto into_source = build;
    eval_into(sink, into_source(expr(source), b));
    ASSERT_EQ(eval(all(expr(sink_values) == expected)).item(), scalar(true));
  }
}

TEST(ExprTiles, RangesAndConcatsMeetSources) {
  random_choices choose(3);
  const tensor a = random_tensor<std::int64_t>(choose, {23, 17});
  const auto source = std::make_shared<tiled>(a, dims{5, 4});
  const auto build = [](const expr& x) {
    return concat(std::vector<expr>{x, x.flip({0})}, 1) +
           repeat(arange(17), 2, 0) * tile(x, {1, 2}) + x.select(1, 2).expand_dims(1);
  };
  EXPECT_TRUE(equal_bits(eval(build(expr(source))), eval(build(a))));
}

TEST(ExprTiles, AlignedAccessLoadsEachTileOnce) {
  executor two({.threads = 2});
  const executor::scope within(two);
  random_choices choose(1);
  const auto source =
      std::make_shared<tiled>(random_tensor<float>(choose, {100, 90}), dims{16, 20});
  eval(expr(source) * 2 + expr(source));
  EXPECT_EQ(source->loads, 7 * 5);
  eval(sum(expr(source), dims{0}));
  EXPECT_EQ(source->loads, 2 * 7 * 5);
  EXPECT_EQ(two.statistics().tiles_decoded, 2u * 7 * 5);
}

// 64 rows do not fit in the cache, and each column needs all of them. Half of the budget holds 16
// columns that are read and as many that are written.
TEST(ExprTiles, RowsAreNotLoadedAgainForEachColumn) {
  executor one({.threads = 1, .memory_bytes = 32 << 10});
  const executor::scope within(one);
  random_choices choose(3);
  const tensor values = random_tensor<double>(choose, {64, 64});
  const auto rows = std::make_shared<tiled>(values, dims{1, 64});
  tiled columns(tensor::zeros({64, 64}, dtype::float64), {64, 1});
  eval_into(columns, expr(rows));
  EXPECT_TRUE(equal_bits(columns.values(), values));
  EXPECT_EQ(columns.stores, 64);
  EXPECT_LE(rows->loads, 64 / 16 * 64);
}

// cache.1
TEST(ExprTiles, ShiftedViewsLoadTilesABoundedNumberOfTimes) {
  executor two({.threads = 2, .memory_bytes = std::size_t{64} << 20});
  const executor::scope within(two);
  random_choices choose(1);
  const tensor values = random_tensor<float>(choose, {100, 90});
  const auto source = std::make_shared<tiled>(values, dims{10, 9});
  const auto slope = [](const expr& x) {
    return x.narrow(0, 1, 99).narrow(1, 1, 89) - x.narrow(0, 0, 99).narrow(1, 0, 89);
  };
  EXPECT_TRUE(equal_bits(eval(slope(expr(source))), eval(slope(values))));
  EXPECT_EQ(source->most_loads_of_a_tile(), 1) << "the cache holds all of it";
}

// cache.2
TEST(TileCache, EvictsTheLeastRecentlyUsedThatNobodyHolds) {
  executor one({.threads = 1});
  random_choices choose(1);
  const tiled source(random_tensor<float>(choose, {8, 4}), {2, 4});
  parallel::tiles_of_call cache(2 * 32, one);  // two tiles of the four
  const auto loads = [&](index_t tile) {
    const int before = source.loads;
    cache.get(source, {tile, 0});
    return source.loads - before;
  };
  {
    const tensor a = cache.get(source, {0, 0}), b = cache.get(source, {1, 0});
    const tensor c = cache.get(source, {2, 0});
    EXPECT_EQ(loads(0) + loads(1) + loads(2), 0);
  }
  EXPECT_EQ(loads(3), 1);  // evicts 0 and 1
  EXPECT_EQ(loads(2), 0);
  EXPECT_EQ(loads(0), 1);  // evicts 3
  EXPECT_EQ(loads(2), 0);
  EXPECT_EQ(loads(3), 1);
}

TEST(ExprTiles, FailuresReachTheCallerAndNothingHangs) {
  executor four({.threads = 4});
  const executor::scope within(four);
  random_choices choose(1);
  const auto source = std::make_shared<tiled>(random_tensor<float>(choose, {64, 64}), dims{8, 8});
  source->failing = {3, 5};
  for (int repetition = 0; repetition < 20; ++repetition) {
    EXPECT_EQ(code_of([&] { eval(sum(expr(source).narrow(0, 3, 50))); }), errc::corrupt);
    EXPECT_EQ(code_of([&] { eval(expr(source).flip({0}) * 2); }), errc::corrupt);
  }
  tiled sink(tensor::zeros({64, 64}, dtype::float32), {8, 8});
  sink.failing = {7, 7};
  EXPECT_EQ(code_of([&] { eval_into(sink, full({64, 64}, 1.0)); }), errc::out_of_space);
}

TEST(ExprTiles, ASourceIsReadAsItWasBeforeItIsReplaced) {
  random_choices choose(1);
  for (const bool whole_tile : {false, true}) {
    const tensor values = random_tensor<std::int32_t>(choose, {20, 20}, test::sharing::distinct);
    const auto source = std::make_shared<tiled>(values, whole_tile ? dims{30, 30} : dims{3, 7});
    const expr x = std::static_pointer_cast<const tile_source>(source);
    for (const expr& value :
         {x * 2 + x, x + x.swapaxes(0, 1), x.flip({0}) - x.select(1, 3),
          x - astype(mean(x), dtype::int32), tile(x.narrow(0, 0, 10), {2, 1})}) {
      const tensor expected = eval(value);
      eval_into(*source, value);
      ASSERT_TRUE(equal_bits(eval(x), expected));
    }
  }
}

TEST(ExprTiles, RefusesReadOnlySources) {
  class frozen final : public tile_source {
    shale::dtype dtype() const noexcept override { return shale::dtype::float32; }
    const dims& shape() const noexcept override { return shape_; }
    const dims& tile_shape() const noexcept override { return shape_; }
    void load(const dims&, const tensor&) const override {}
    std::uint64_t stored_bytes(const dims&) const override { return 0; }
    dims shape_{4};
  } source;
  EXPECT_EQ(code_of([&] { eval_into(source, full({4}, 1)); }), errc::access_denied);
}

// ---- misuse ------------------------------------------------------------------------------------

/// A source that reports the dtype and the shapes that the test gives it.
class strange_source final : public tile_source {
 public:
  strange_source(shale::dtype type, const dims& shape, const dims& tile_shape)
      : type_(type), shape_(shape), tile_shape_(tile_shape) {}
  shale::dtype dtype() const noexcept override { return type_; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  bool writable() const noexcept override { return true; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims&, const tensor& into) const override {
    std::memset(const_cast<std::byte*>(into.data()), 0, into.size_bytes());
  }
  void store(const dims&, const tensor&) override {}

 private:
  shale::dtype type_;
  dims shape_;
  dims tile_shape_;
};

TEST(Tiles, InvalidSourcesAreRefused) {
  const auto none = static_cast<dtype>(200);
  constexpr index_t most = std::numeric_limits<index_t>::max();
  const struct {
    dtype type;
    dims shape;
    dims tile_shape;
  } strange[] = {
      {dtype::float32, {10}, {0}},
      {dtype::float32, {10}, {-3}},
      {dtype::float32, {10}, {}},
      {dtype::float32, {10}, {5, 1}},
      {dtype::float32, {10, 4}, {5, 0}},
      {dtype::float32, {10, 4}, {5}},
      {dtype::float32, {}, {1}},
      {dtype::float32, {-1}, {1}},
      {dtype::float32, {0}, {0}},
      {none, {10}, {5}},
      {dtype(0), {10}, {5}},
      {dtype::float32, {most, most}, {1, 1}},
  };
  for (const auto& operand : strange) {
    SCOPED_TRACE(to_string(operand.shape) + " " + to_string(operand.tile_shape));
    const auto source =
        std::make_shared<strange_source>(operand.type, operand.shape, operand.tile_shape);
    EXPECT_EQ(code_of([&] { eval(sum(expr(source))); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { eval_into(*source, expr(1)); }), errc::invalid_argument);
  }
  EXPECT_EQ(code_of([] { expr(std::shared_ptr<const tile_source>()); }), errc::invalid_argument);
}

TEST(Tiles, MayBeLargerThanTheirSource) {
  for (const index_t extent : {index_t{10}, index_t{11}, std::numeric_limits<index_t>::max()}) {
    const auto source = std::make_shared<strange_source>(dtype::float32, dims{10}, dims{extent});
    EXPECT_EQ(eval(sum(expr(source))).item(), scalar(0.0F));
    EXPECT_EQ(eval(sum(expr(source).flip({0}) + 1)).item(), scalar(10.0F));
    eval_into(*source, expr(source) + 1);
  }
}

TEST(Tiles, MayHaveMoreElementsThanAnIndexCounts) {
  constexpr index_t huge = index_t{1} << 62;
  const auto source =
      std::make_shared<strange_source>(dtype::float32, dims{10, 12}, dims{huge, huge});
  EXPECT_EQ(eval(sum(expr(source) + 1)).item(), scalar(120.0F));
  eval_into(*source, expr(source) + 1);
  const expr repeated = expr(source).broadcast_to({1 << 15, 10, 12});
  executor one({.threads = 1});
  const executor::scope within(one);
  EXPECT_EQ(eval(sum(repeated + 1)).item(), scalar(120.0F * (1 << 15)));
  EXPECT_GE(one.statistics().tiles, 4U) << "units of at most 2^20 of the 3,932,160 elements";
}

TEST(Tiles, OfSourcesWithoutEndAreCountedUpToTheLargestNumber) {
  const auto source = std::make_shared<strange_source>(dtype::float64, dims{index_t{1} << 61},
                                                       dims{index_t{1} << 40});
  const evaluation_plan plan = explain(sum(expr(source)));
  EXPECT_EQ(plan.tiles_decoded, std::uint64_t{1} << 21);
  EXPECT_EQ(plan.bytes_read, std::numeric_limits<std::uint64_t>::max());
}

TEST(Tiles, OutsideTheirSourceAreRefused) {
  for (const dims& tile :
       {dims{-1}, dims{4}, dims{std::numeric_limits<index_t>::max()}, dims{}, dims{0, 0}})
    EXPECT_EQ(code_of([&] { tile_region({10}, {3}, tile); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { tile_region({10}, {0}, {0}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { tile_region({10}, {3, 3}, {0}); }), errc::invalid_argument);
  EXPECT_EQ(tile_region({10}, {3}, {3}).shape, dims{1});
  EXPECT_EQ(tile_region({0}, {3}, {0}).shape, dims{0});
}

TEST(Expr, RefusesWhatIsNoDtype) {
  const auto none = static_cast<dtype>(18);
  const expr values(tensor::zeros({3}, dtype::float32));
  EXPECT_EQ(code_of([&] { astype(values, none); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { astype(expr(1), none); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { full({3}, 1, none); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { arange(0, 3, 1, none); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { tensor::full({3}, 1, none); }), errc::invalid_argument);
}

}  // namespace
}  // namespace shale
