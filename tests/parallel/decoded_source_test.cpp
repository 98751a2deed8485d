// Tests which calls keep the tiles of a source decoded, for random views. The tiles that a view
// touches are counted element by element.
#include "parallel/sources/decoded_source.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/grid.hpp"
#include "shale/index.hpp"

namespace shale::parallel {
namespace {

// A source of bytes that nobody loads.
class unloaded final : public tile_source, public decoded_source {
 public:
  unloaded(dims shape, dims tile_shape, bool keeps)
      : shape_(shape), tile_shape_(tile_shape), keeps_(keeps) {}
  shale::dtype dtype() const noexcept override { return shale::dtype::int8; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  void load(const dims&, const tensor&) const override { throw std::logic_error("loaded"); }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  bool keeps_tiles() const noexcept override { return keeps_; }
  tensor decoded_tile(const dims&, executor&) const override { throw std::logic_error("decoded"); }

 private:
  dims shape_;
  dims tile_shape_;
  bool keeps_;
};

using position = std::pair<index_t, index_t>;

// The elements of a source of two axes that a view shows.
std::set<position> shown_by(const axis_map& view) {
  std::set<position> shown;
  for (index_t n = 0; n < element_count(view.shape); ++n) {
    const dims at = detail::unravel(n, view.shape);
    dims element = view.base;
    for (index_t axis = 0; axis < view.rank(); ++axis)
      if (view.from[axis] >= 0) element[view.from[axis]] += at[axis] * view.step[axis];
    shown.emplace(element[0], element[1]);
  }
  return shown;
}

axis_map random_view(std::mt19937& random, const dims& shape) {
  const auto below = [&](index_t n) { return static_cast<index_t>(random()) % n; };
  axis_map view = axis_map::identity(shape);
  for (index_t axis = 0; axis < 2; ++axis) {
    const index_t step = below(2 * shape[axis]) + 1;
    const index_t first = below(shape[axis]);
    const index_t count = 1 + below(shape[axis]);
    if (below(4) == 0) continue;
    const bool backwards = below(3) == 0;
    view = view.sliced(axis, {.start = first, .step = backwards ? -step : step});
    if (view.shape[axis] > count) view = view.narrow(axis, 0, count);
  }
  if (below(2) == 0) view = view.permute_dims({1, 0});
  if (below(3) == 0) view = view.select(0, 0);
  if (below(3) == 0) view = view.expand_dims(0).broadcast_to(view.expand_dims(0).shape);
  return view;
}

// What a view touches, counted element by element.
struct touched {
  std::uint64_t bytes = 0;  // of its tiles; what is kept of one beside its elements counts 1 KiB
  bool in_part = false;
};

touched touched_by(const axis_map& view, const dims& shape, const dims& tile) {
  const std::set<position> shown = shown_by(view);
  std::set<position> tiles;
  for (const auto& [row, column] : shown) tiles.emplace(row / tile[0], column / tile[1]);
  std::uint64_t elements = 0;  // of these tiles
  for (const auto& [row, column] : tiles)
    elements +=
        static_cast<std::uint64_t>(element_count(tile_region(shape, tile, {row, column}).shape));
  return {tiles.size() * (static_cast<std::uint64_t>(element_count(tile)) + 1024),
          shown.size() < elements};
}

constexpr std::uint64_t room = 4400;

// Has room for twice that many bytes, so that one call may keep that many.
executor with_room() { return executor({.threads = 1, .memory_bytes = std::size_t{8} * 2 * room}); }

// cache.4
TEST(DecodedSource, KeepsTilesOfCallsThatReadPartsOfFew) {
  std::mt19937 random(11);
  const auto up_to = [&](index_t n) { return static_cast<index_t>(random()) % n + 1; };
  int kept = 0;
  int whole = 0;
  int many = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    const dims shape{up_to(20), up_to(20)};
    const dims tile{up_to(9), up_to(9)};
    const unloaded source(shape, tile, true);
    const axis_map view = random_view(random, shape);
    const auto [bytes, in_part] = touched_by(view, shape, tile);
    const executor on = with_room();
    const bool fits = bytes <= room;
    EXPECT_EQ(to_keep_decoded(source, view, on) != nullptr, in_part && fits)
        << "shape " << to_string(shape) << ", tile " << to_string(tile) << ", view "
        << to_string(view.shape) << " from " << to_string(view.base);
    (in_part && fits ? kept : in_part ? many : whole) += 1;
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(kept, 100);
  EXPECT_GT(many, 100);
  EXPECT_GT(whole, 100);
}

// cache.4
TEST(DecodedSource, KeepsTilesOfSeveralViewsIfTheyFitTogether) {
  std::mt19937 random(12);
  const auto up_to = [&](index_t n) { return static_cast<index_t>(random()) % n + 1; };
  const executor on = with_room();
  int counts[3] = {};  // of calls, by the sources that are kept
  for (int turn = 0; turn < 2000; ++turn) {
    const unloaded sources[] = {{{up_to(20), up_to(20)}, {up_to(9), up_to(9)}, true},
                                {{up_to(20), up_to(20)}, {up_to(9), up_to(9)}, true}};
    std::vector<axis_map> maps;
    std::vector<viewed_source> views;
    std::vector<const tile_source*> order;  // in which the views name them
    std::map<const tile_source*, touched> sums;
    maps.reserve(4);
    for (index_t count = up_to(4); count > 0; --count) {
      const unloaded& source = sources[up_to(2) - 1];
      maps.push_back(random_view(random, source.shape()));
      views.push_back({&source, &maps.back()});
      if (sums.count(&source) == 0) order.push_back(&source);
      const touched more = touched_by(maps.back(), source.shape(), source.tile_shape());
      sums[&source].bytes += more.bytes;
      sums[&source].in_part |= more.in_part;
    }
    std::vector<const tile_source*> wanted;
    std::uint64_t left = room;
    for (const tile_source* source : order) {
      if (!sums[source].in_part || sums[source].bytes > left) continue;
      left -= sums[source].bytes;
      wanted.push_back(source);
    }
    std::vector<const tile_source*> kept;
    for (const kept_source& each : sources_to_keep(views, on)) kept.push_back(each.source);
    ASSERT_EQ(kept, wanted) << "turn " << turn;
    ++counts[kept.size()];
  }
  for (const int count : counts) EXPECT_GT(count, 50);
}

TEST(DecodedSource, KeepsNothingOfSourcesThatChangeAndOfEmptyViews) {
  executor on({.threads = 1, .memory_bytes = std::size_t{1} << 20});
  const unloaded changing({8, 8}, {4, 4}, false);
  const unloaded source({8, 8}, {4, 4}, true);
  const axis_map all = axis_map::identity({8, 8});
  const axis_map one = all.select(0, 3).select(0, 3);
  EXPECT_EQ(to_keep_decoded(source, one, on), &source);
  EXPECT_EQ(to_keep_decoded(changing, one, on), nullptr);
  EXPECT_EQ(to_keep_decoded(source, all.narrow(1, 3, 0), on), nullptr);
}

}  // namespace
}  // namespace shale::parallel
