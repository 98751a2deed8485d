// Tests functions over tiles with halos. The oracle computes each element from its neighbours,
// index by index.
#include "shale/map_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "parallel/executor/executor_state.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "support/failures.hpp"
#include "support/halo_oracle.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"
#include "support/tensor_tiles.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;
using test::random_tensor;
using test::sharing;
using test::tensor_tiles;

constexpr std::int64_t value_beyond = 1000;
constexpr std::size_t mib = std::size_t{1} << 20;

constexpr halo_mode all_modes[] = {halo_mode::clipped, halo_mode::constant,  halo_mode::edge,
                                   halo_mode::reflect, halo_mode::symmetric, halo_mode::wrap};

// A halo, and the same sums as test::sums_around of the tiles that show it.
struct summed_halo {
  std::vector<halo_width> widths;
  halo_mode mode;

  halo_options options() const { return {.widths = widths, .mode = mode, .value = value_beyond}; }

  std::vector<std::int64_t> expected(const tensor& in, const dims& shape) const {
    return test::sums_around(elements_of<std::int32_t>(in.broadcast_to(shape)),
                             test::as_list(shape), widths, mode, value_beyond);
  }

  void operator()(const tile_view<std::int64_t>& out,
                  const tile_view<const std::int32_t>& in) const {
    test::index_list window;
    for (const halo_width& width : widths) window.push_back(width.before + 1 + width.after);
    test::for_each_index(test::as_list(out.shape), [&](const test::index_list& at) {
      std::int64_t sum = 0, number = 0;
      test::for_each_index(window, [&](const test::index_list& place) {
        ++number;
        dims from;
        for (index_t axis = 0; axis < out.shape.size(); ++axis) {
          const auto a = static_cast<std::size_t>(axis);
          from.push_back(at[a] + place[a] - widths[a].before);
          if (from[axis] < -in.before[axis] || from[axis] >= in.shape[axis] + in.after[axis])
            return;
        }
        sum += number * in[from];
      });
      out[dims(std::span<const index_t>(at.data(), at.size()))] = sum;
    });
  }
};

// The function as map_tiles takes it: with the types of its tiles.
auto by(const summed_halo& sums) {
  return [sums](tile_view<std::int64_t> out, tile_view<const std::int32_t> in) { sums(out, in); };
}

summed_halo some_halo(random_choices& choose, index_t rank) {
  summed_halo sums{{}, all_modes[choose(0, 5)]};
  for (index_t axis = 0; axis < rank; ++axis) sums.widths.push_back({choose(0, 2), choose(0, 2)});
  if (rank > 0 && choose(0, 3) == 0)  // wider than tiles, and than the operand
    sums.widths[static_cast<std::size_t>(choose(0, rank - 1))] = {choose(0, 14), choose(0, 14)};
  return sums;
}

dims some_tile(random_choices& choose, const dims& shape) {
  dims tile;
  for (const index_t extent : shape) tile.push_back(choose(1, std::max<index_t>(extent, 1)));
  return tile;
}

TEST(MapTiles, MatchAnIndexByIndexLoopOverRandomLayouts) {
  executor one({.threads = 1}), three({.threads = 3});
  for (std::uint64_t seed = 0; seed < test::cases(200); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 3, .longest = 6});
    const tensor out = random_tensor<std::int64_t>(choose, shape, sharing::distinct);
    const tensor in =
        random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, shape));
    const summed_halo sums = some_halo(choose, shape.size());
    const map_tiles_options options{.tile_shape =
                                        choose(0, 3) == 0 ? dims() : some_tile(choose, shape)};
    const executor::scope within(seed % 2 ? one : three);
    map_tiles(by(sums), options, out, with_halo(in, sums.options()));
    ASSERT_EQ(elements_of<std::int64_t>(out), sums.expected(in, shape));
  }
}

TEST(MapTiles, GatherTheTilesOfSources) {
  executor one({.threads = 1}), three({.threads = 3});
  for (std::uint64_t seed = 0; seed < test::cases(200); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 3, .longest = 6});
    const tensor out = random_tensor<std::int64_t>(choose, shape, sharing::distinct);
    const tensor in = random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, shape),
                                                  sharing::distinct);
    const summed_halo sums = some_halo(choose, shape.size());
    const auto source = std::make_shared<const tensor_tiles>(in, some_tile(choose, in.shape()));
    const auto sink = std::make_shared<tensor_tiles>(out, some_tile(choose, shape));
    const executor::scope within(seed % 2 ? one : three);
    map_tiles(by(sums), sink, with_halo(source, sums.options()));
    ASSERT_EQ(elements_of<std::int64_t>(out), sums.expected(in, shape));
    map_tiles([](tile_view<std::int64_t> to) { to[dims::filled(to.shape.size(), 0)] = -1; }, out);
    map_tiles(by(sums), {.tile_shape = some_tile(choose, shape)}, out,
              with_halo(source, sums.options()));
    ASSERT_EQ(elements_of<std::int64_t>(out), sums.expected(in, shape));
  }
}

// The budget of 8 KiB does not hold the files, so tiles are copied with their halos.
class MappedHalos : public testing::Test {
 protected:
  tensor in_file(const tensor& from) {
    const std::string path = directory_ / std::to_string(files_++);
    storage bytes = create_file(path, from.storage().size_bytes());
    std::memcpy(bytes.data(), from.storage().data(), bytes.size_bytes());
    return tensor(bytes, from.dtype(), from.layout());
  }

  executor on_{{.threads = 2, .memory_bytes = 8 << 10}};
  executor::scope within_{on_};
  test::scratch_directory directory_;
  int files_ = 0;
};

TEST_F(MappedHalos, AreCopiedFromFilesLargerThanTheBudget) {
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape{choose(30, 50), choose(30, 50)};
    const tensor out = in_file(random_tensor<std::int64_t>(choose, shape, sharing::distinct));
    const tensor in =
        in_file(random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, shape)));
    const summed_halo sums = some_halo(choose, 2);
    const auto before = test::bytes_of(out.storage());
    map_tiles(by(sums), {.tile_shape = {choose(4, 12), choose(4, 12)}}, out,
              with_halo(in, sums.options()));
    ASSERT_EQ(elements_of<std::int64_t>(out), sums.expected(in, shape));
    auto expected = before;  // bytes between the elements do not change
    const auto elements = elements_of<std::int64_t>(out);
    const auto at = test::positions_of(out);
    for (std::size_t i = 0; i < at.size(); ++i)
      std::memcpy(expected.data() + at[i] * 8, &elements[i], 8);
    ASSERT_EQ(test::bytes_of(out.storage()), expected);
  }
  EXPECT_GT(on_.statistics().mapped_tiles, 0U);
}

TEST_F(MappedHalos, OfFilesAndSourcesMeetInOneCall) {
  random_choices choose(5);
  const dims shape{60, 50};
  const tensor out = random_tensor<std::int64_t>(choose, shape, sharing::distinct);
  const tensor stored = random_tensor<std::int32_t>(choose, shape, sharing::distinct);
  const tensor file = in_file(random_tensor<std::int32_t>(choose, shape, sharing::distinct));
  const summed_halo sums{{{2, 1}, {1, 3}}, halo_mode::symmetric};
  const auto sink = std::make_shared<tensor_tiles>(out, dims{16, 16});
  const auto source = std::make_shared<const tensor_tiles>(stored, dims{7, 30});
  map_tiles(
      [&](tile_view<std::int64_t> to, tile_view<const std::int32_t> a,
          tile_view<const std::int32_t> b) {
        sums(to, a);
        test::for_each_index(test::as_list(to.shape), [&](const test::index_list& at) {
          to(at[0], at[1]) += b(at[0] - 1, at[1]);
        });
      },
      sink, with_halo(source, sums.options()),
      with_halo(file, {.widths = {{1, 0}, {0, 0}}, .mode = halo_mode::constant, .value = -5}));
  auto expected = sums.expected(stored, shape);
  const auto other = elements_of<std::int32_t>(file);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += i < 50 ? -5 : other[i - 50];
  EXPECT_EQ(elements_of<std::int64_t>(out), expected);
  EXPECT_GT(on_.statistics().mapped_tiles, 0U);
}

TEST_F(MappedHalos, OfOneFileDifferFromOperandToOperand) {
  random_choices choose(9);
  const dims shape{50, 40};
  const tensor file = in_file(random_tensor<std::int32_t>(choose, shape, sharing::distinct));
  const tensor out = tensor::zeros(shape, dtype::int64);
  const map_tiles_options tiles{.tile_shape = {8, 8}};
  const auto old = elements_of<std::int32_t>(file);
  map_tiles(
      [](tile_view<std::int64_t> to, tile_view<const std::int32_t> here,
         tile_view<const std::int32_t> below, tile_view<const std::int32_t> above) {
        for (index_t i = 0; i < to.shape[0]; ++i)
          for (index_t j = 0; j < to.shape[1]; ++j)
            to(i, j) = 10000 * here(i, j) + 100 * below(i + 1, j) + above(i - 2, j);
      },
      tiles, out, file, with_halo(file, {.widths = {{0, 1}, {0, 0}}, .mode = halo_mode::edge}),
      with_halo(file, {.widths = {{2, 0}, {0, 0}}, .mode = halo_mode::edge}));
  const auto got = elements_of<std::int64_t>(out);
  for (std::size_t i = 0; i < 50; ++i)
    for (std::size_t j = 0; j < 40; ++j)
      ASSERT_EQ(got[i * 40 + j], 10000 * old[i * 40 + j] +
                                     100 * old[std::min<std::size_t>(i + 1, 49) * 40 + j] +
                                     old[(i < 2 ? 0 : i - 2) * 40 + j]);
  EXPECT_GT(on_.statistics().mapped_tiles, 0U);
}

TEST_F(MappedHalos, OfAPrivateMappingAreReadInPlace) {
  random_choices choose(6);
  const dims shape{64, 64};
  const tensor in = random_tensor<std::int32_t>(choose, {layout(shape), 64 * 64});
  const std::string path = directory_ / "numbers";
  {
    storage bytes = create_file(path, 64 * 64 * 4);
    std::memcpy(bytes.data(), in.storage().data(), bytes.size_bytes());
  }
  const tensor own(map_file(path, {.access = access::copy_on_write}), dtype::int32, layout(shape));
  const tensor out = tensor::zeros(shape, dtype::int64);
  const summed_halo sums{{{1, 1}, {1, 1}}, halo_mode::wrap};
  map_tiles(by(sums), {.tile_shape = {8, 64}}, out, with_halo(own, sums.options()));
  EXPECT_EQ(elements_of<std::int64_t>(out), sums.expected(in, shape));
}

TEST_F(MappedHalos, EndWithTheFirstExceptionOfTheFunction) {
  random_choices choose(7);
  const dims shape{50, 40};
  const tensor in = in_file(random_tensor<std::int32_t>(choose, shape, sharing::distinct));
  const tensor out = in_file(random_tensor<std::int64_t>(choose, shape, sharing::distinct));
  std::atomic<int> calls = 0;
  const auto stop_soon = [&](tile_view<std::int64_t> to, tile_view<const std::int32_t> from) {
    for (index_t i = 0; i < to.shape[0]; ++i)
      for (index_t j = 0; j < to.shape[1]; ++j) to(i, j) = from(i - 1, j);
    if (++calls == 3) throw std::runtime_error("stop");
  };
  const tile_operand around = with_halo(in, {.widths = {{1, 1}}, .mode = halo_mode::edge});
  EXPECT_THROW(map_tiles(stop_soon, {.tile_shape = {8, 8}}, out, around), std::runtime_error);
  EXPECT_EQ(parallel::state_of(on_).tokens.held_bytes(), 0U);
}

// ---- what a function is told --------------------------------------------------------------------

TEST(MapTiles, PartitionTheOutput) {
  const tensor out = tensor::zeros({10, 7}, dtype::int32);
  const tensor in = tensor::zeros({10, 7}, dtype::float32);
  std::mutex lock;
  std::set<std::vector<index_t>> seen;
  map_tiles(
      [&](tile_view<std::int32_t> to, tile_view<const float> from) {
        const std::lock_guard held(lock);
        seen.insert({to.start[0], to.start[1], to.shape[0], to.shape[1]});
        EXPECT_EQ(from.start, to.start);
        EXPECT_EQ(from.shape, to.shape);
        EXPECT_EQ(to.before, dims({0, 0}));
        EXPECT_EQ(to.after, dims({0, 0}));
        EXPECT_EQ(from.before[0], std::min<index_t>(3, to.start[0]));
        EXPECT_EQ(from.after[0], std::min<index_t>(2, 10 - to.start[0] - to.shape[0]));
        EXPECT_EQ(from.before[1], 0);
        EXPECT_EQ(from.after[1], std::min<index_t>(1, 7 - to.start[1] - to.shape[1]));
      },
      {.tile_shape = {4, 5}}, out, with_halo(in, {.widths = {{3, 2}, {0, 1}}}));
  const std::set<std::vector<index_t>> expected{{0, 0, 4, 5}, {0, 5, 4, 2}, {4, 0, 4, 5},
                                                {4, 5, 4, 2}, {8, 0, 2, 5}, {8, 5, 2, 2}};
  EXPECT_EQ(seen, expected);
}

TEST(MapTiles, WorkOnScalarsAndOnNothing) {
  const tensor out = tensor::zeros({}, dtype::int64);
  const tensor in = tensor::full({}, 7, dtype::int32);
  int calls = 0;
  const auto twice = [&](tile_view<std::int64_t> to, tile_view<const std::int32_t> from) {
    ++calls;
    EXPECT_EQ(to.shape, dims());
    EXPECT_EQ(from.before, dims());
    to() = 2 * from();
  };
  map_tiles(twice, out, with_halo(in, {.widths = {{3, 3}}, .mode = halo_mode::wrap}));
  EXPECT_EQ(out.item(), scalar(14));
  const auto source = std::make_shared<const tensor_tiles>(in, dims());
  map_tiles(twice, out, source);
  EXPECT_EQ(calls, 2);
  for (const dims& shape : {dims{0}, dims{4, 0}, dims{0, 3}}) {
    const tensor nothing = tensor::zeros(shape, dtype::int64);
    const tensor empty = tensor::zeros(shape, dtype::int32);
    for (const halo_mode mode : all_modes)
      map_tiles(twice, nothing, with_halo(empty, {.widths = {{2, 1}}, .mode = mode}));
    map_tiles(twice, std::make_shared<tensor_tiles>(nothing, dims::filled(shape.size(), 2)),
              std::make_shared<const tensor_tiles>(empty, dims::filled(shape.size(), 1)));
  }
  EXPECT_EQ(calls, 2);
}

TEST(MapTiles, WriteSeveralOutputs) {
  const tensor a = tensor::zeros({30, 20}, dtype::int32), b = tensor::zeros({30, 20}, dtype::uint8);
  const auto sink = std::make_shared<tensor_tiles>(b, dims{8, 6});
  map_tiles(
      [](tile_view<std::int32_t> to, tile_view<std::uint8_t> other) {
        for (index_t i = 0; i < to.shape[0]; ++i)
          for (index_t j = 0; j < to.shape[1]; ++j) {
            to(i, j) = static_cast<std::int32_t>((to.start[0] + i) * 20 + to.start[1] + j);
            other(i, j) = static_cast<std::uint8_t>(to(i, j) % 251);
          }
      },
      a, sink);
  const auto numbers = elements_of<std::int32_t>(a);
  const auto bytes = elements_of<std::uint8_t>(b);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(numbers[i], static_cast<std::int32_t>(i));
    ASSERT_EQ(bytes[i], i % 251);
  }
}

// An input without a halo may be the output; one with a halo is copied first.
TEST(MapTiles, ReadInputsAsTheyWereBefore) {
  random_choices choose(8);
  const tensor x = random_tensor<std::int64_t>(choose, {40, 30}, sharing::distinct);
  const auto old = elements_of<std::int64_t>(x);
  const map_tiles_options tiles{.tile_shape = {4, 7}};
  map_tiles(
      [](tile_view<std::int64_t> to, tile_view<const std::int64_t> from) {
        for (index_t i = 0; i < to.shape[0]; ++i)
          for (index_t j = 0; j < to.shape[1]; ++j) to(i, j) = from(i - 1, j) + from(i, j);
      },
      tiles, x, with_halo(x, {.widths = {{1, 0}, {0, 0}}, .mode = halo_mode::constant}));
  auto now = elements_of<std::int64_t>(x);
  for (std::size_t i = 0; i < now.size(); ++i)
    ASSERT_EQ(now[i], old[i] + (i < 30 ? 0 : old[i - 30]));
  executor small({.threads = 1, .memory_bytes = 1000});
  const executor::scope within(small);
  const auto change_sign = [](tile_view<std::int64_t> to, tile_view<const std::int64_t> from) {
    for (index_t i = 0; i < to.shape[0]; ++i)
      for (index_t j = 0; j < to.shape[1]; ++j) to(i, j) = -from(i, j);
  };
  map_tiles(change_sign, tiles, x, x);
  EXPECT_EQ(elements_of<std::int64_t>(x).back(), -now.back());
  EXPECT_EQ(code_of([&] {
              map_tiles(change_sign, tiles, x, with_halo(x, {.widths = {{1, 1}}}));
            }),
            errc::out_of_memory);
}

// ---- budgets ------------------------------------------------------------------------------------

// A pass over 4 MiB of source, and 8 MiB of output, in a budget of 1 MiB.
TEST(MapTiles, StayInsideTheBudget) {
  const tensor in = tensor::ones({1024, 1024}, dtype::int32);
  const tensor out = tensor::zeros({1024, 1024}, dtype::int64);
  const auto source = std::make_shared<const tensor_tiles>(in, dims{64, 64});
  const auto sink = std::make_shared<tensor_tiles>(out, dims{64, 64});
  memory_pool pool;
  executor on({.threads = 4, .memory_bytes = mib, .pool = &pool});
  const executor::scope within(on);
  map_tiles(
      [](tile_view<std::int64_t> to, tile_view<const std::int32_t> from) {
        for (index_t i = 0; i < 64; ++i)
          for (index_t j = 0; j < 64; ++j) to(i, j) = from(i - 1, j) + from(i, j + 1);
      },
      sink, with_halo(source, {.widths = {{1, 1}}, .mode = halo_mode::wrap}));
  for (const auto element : elements_of<std::int64_t>(out)) ASSERT_EQ(element, 2);
  EXPECT_EQ(on.statistics().tiles, 256U);
  EXPECT_LE(on.statistics().scratch_bytes_peak, mib);
  EXPECT_LE(pool.statistics().peak_live_bytes, mib);
}

TEST(MapTiles, DecodeEachTileOnceIfTheCacheHoldsThem) {
  const tensor in = tensor::ones({100, 90}, dtype::int32);
  const tensor out = tensor::zeros({100, 90}, dtype::int32);
  const auto source = std::make_shared<const tensor_tiles>(in, dims{10, 10});
  executor on({.threads = 3, .memory_bytes = mib});
  const executor::scope within(on);
  map_tiles(
      [](tile_view<std::int32_t> to, tile_view<const std::int32_t> from) {
        for (index_t i = 0; i < to.shape[0]; ++i)
          for (index_t j = 0; j < to.shape[1]; ++j) to(i, j) = from(i - 3, j) + from(i, j + 11);
      },
      {.tile_shape = {10, 10}}, out,
      with_halo(source, {.widths = {{3, 0}, {0, 11}}, .mode = halo_mode::reflect}));
  for (const auto element : elements_of<std::int32_t>(out)) ASSERT_EQ(element, 2);
  EXPECT_EQ(on.statistics().tiles_decoded, 90U);
}

// Half of the budget does not hold two tiles with their halos, so one thread works at a time.
TEST(MapTiles, WorkOnAsManyTilesAtOnceAsHalfOfTheBudgetHolds) {
  const tensor in = tensor::ones({512, 512}, dtype::int32);
  const tensor out = tensor::zeros({512, 512}, dtype::int32);
  const auto source = std::make_shared<const tensor_tiles>(in, dims{64, 64});
  executor on({.threads = 4, .memory_bytes = mib});
  const executor::scope within(on);
  std::atomic<int> inside = 0, most = 0;
  map_tiles(
      [&](tile_view<std::int32_t> to, tile_view<const std::int32_t> from) {
        const int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
        for (index_t i = 0; i < to.shape[0]; ++i)
          for (index_t j = 0; j < to.shape[1]; ++j) to(i, j) = from(i - 128, j + 128);
        --inside;
      },
      {.tile_shape = {64, 64}}, out,
      with_halo(source, {.widths = {{128, 128}}, .mode = halo_mode::symmetric}));
  EXPECT_EQ(most, 1) << "2 x 320 x 320 x 4 bytes are 800 KiB";
  for (const auto element : elements_of<std::int32_t>(out)) ASSERT_EQ(element, 1);
}

// ---- exceptions, cancellation, progress ---------------------------------------------------------

struct last_report final : progress_sink {
  void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override {
    done = done_bytes;
    total = total_bytes;
  }
  std::uint64_t done = 0, total = 0;
};

TEST(MapTiles, ReportProgress) {
  last_report sink;
  executor on({.threads = 2, .progress = &sink});
  const executor::scope within(on);
  const tensor out = tensor::zeros({100, 10}, dtype::float32);
  const tensor in = tensor::zeros({100, 10}, dtype::float64);
  map_tiles([](tile_view<float>, tile_view<const double>) {}, {.tile_shape = {5, 5}}, out, in);
  EXPECT_EQ(sink.total, 12000U);
  EXPECT_EQ(sink.done, sink.total);
  EXPECT_EQ(on.statistics().bytes_read, 8000U);
  EXPECT_EQ(on.statistics().bytes_written, 4000U);
  EXPECT_EQ(on.statistics().passes, 1U);
}

TEST(MapTiles, EndWithTheFirstExceptionOfTheFunction) {
  executor two({.threads = 2});
  const executor::scope within(two);
  const tensor out = tensor::zeros({64}, dtype::float32);
  const map_tiles_options tiles{.tile_shape = {1}};
  EXPECT_THROW(map_tiles([](tile_view<float>) { throw std::runtime_error("stop"); }, tiles, out),
               std::runtime_error);
  EXPECT_THROW(map_tiles([](tile_view<float>) { throw std::bad_alloc(); }, tiles, out),
               std::bad_alloc);
  const auto lost = std::make_shared<const tensor_tiles>(out, dims{8}, dims{5});
  EXPECT_EQ(code_of([&] {
              map_tiles([](tile_view<float>, tile_view<const float>) {},
                        tensor::zeros({64}, dtype::float32),
                        with_halo(lost, {.widths = {{9, 9}}, .mode = halo_mode::wrap}));
            }),
            errc::corrupt);
}

TEST(MapTiles, EndWhenTheyAreCancelledFromInside) {
  executor on({.threads = 1});
  const executor::scope within(on);
  const tensor out = tensor::zeros({10}, dtype::float32);
  int calls = 0;
  const auto stop = [&](tile_view<float>) {
    if (++calls == 3) executor::current().cancel();
  };
  EXPECT_EQ(code_of([&] { map_tiles(stop, {.tile_shape = {1}}, out); }), errc::cancelled);
  EXPECT_EQ(calls, 3);
  on.resume();
  map_tiles(stop, {.tile_shape = {1}}, out);
  EXPECT_EQ(calls, 13);
}

// A call from inside of a tile runs on the same executor.
TEST(MapTiles, MayCallTheEngine) {
  executor two({.threads = 2});
  const executor::scope within(two);
  const tensor out = tensor::zeros({8, 8}, dtype::int32);
  map_tiles(
      [](tile_view<std::int32_t> to) {
        const tensor inner = tensor::zeros({4}, dtype::int32);
        map_tiles([](tile_view<std::int32_t> x) { x(0) = 3; }, {.tile_shape = {1}}, inner);
        for (index_t i = 0; i < to.shape[0]; ++i)
          for (index_t j = 0; j < to.shape[1]; ++j) to(i, j) = elements_of<std::int32_t>(inner)[3];
      },
      {.tile_shape = {2, 2}}, out);
  for (const auto element : elements_of<std::int32_t>(out)) ASSERT_EQ(element, 3);
}

// ---- refusals -----------------------------------------------------------------------------------

constexpr auto store_first = [](tile_view<float> to, tile_view<const float> from) {
  to(0, 0) = from(0, 0);
};

errc code_for(const tile_operand& to, const tile_operand& from,
              const map_tiles_options& options = {}) {
  return code_of([&] { map_tiles(store_first, options, to, from); });
}

TEST(MapTiles, RefuseWhatDoesNotFit) {
  const tensor out = tensor::zeros({4, 6}, dtype::float32),
               in = tensor::zeros({4, 6}, dtype::float32);
  EXPECT_EQ(code_for(out, in), errc{});
  EXPECT_EQ(code_for(out, tensor::zeros({4, 5}, dtype::float32)), errc::invalid_argument);
  EXPECT_EQ(code_for(tensor::zeros({6}, dtype::float32), in), errc::invalid_argument);
  EXPECT_EQ(code_for(out, tensor::zeros({4, 6}, dtype::float64)), errc::invalid_argument);
  EXPECT_EQ(code_for(out.as_read_only(), in), errc::access_denied);
  EXPECT_EQ(code_for(in.narrow(0, 0, 1).broadcast_to({4, 6}), in), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { map_tiles([](tile_view<const float>) {}, in); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { map_tiles([](tile_view<float>, tile_view<float>) {}, out, out); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              map_tiles([](tile_view<float>, tile_view<float>) {}, out,
                        tensor::zeros({4}, dtype::float32));
            }),
            errc::invalid_argument);
  void (*none)(tile_view<float>) = nullptr;
  EXPECT_EQ(code_of([&] { map_tiles(none, out); }), errc::invalid_argument);
  EXPECT_EQ(code_for(out, std::shared_ptr<const tile_source>()), errc::invalid_argument);

  const auto haloed = [&](const halo_options& around) {
    return code_for(out, with_halo(in, around));
  };
  EXPECT_EQ(haloed({.widths = {{1, 1}, {1, 1}, {1, 1}}}), errc::invalid_argument);
  EXPECT_EQ(haloed({.widths = {{-1, 0}}}), errc::invalid_argument);
  EXPECT_EQ(haloed({.widths = {{0, index_t{1} << 60}}}), errc::invalid_argument);
  EXPECT_EQ(haloed({.widths = {{1, 0}}, .mode = halo_mode{77}}), errc::invalid_argument);
  EXPECT_EQ(code_for(with_halo(out, {.widths = {{1, 0}}}), in), errc::invalid_argument);
  const tensor bytes = tensor::zeros({4, 6}, dtype::uint8);
  EXPECT_EQ(code_of([&] {
              map_tiles([](tile_view<float>, tile_view<const std::uint8_t>) {}, out,
                        with_halo(bytes,
                                  {.widths = {{1, 0}}, .mode = halo_mode::constant, .value = 256}));
            }),
            errc::invalid_argument);
}

TEST(MapTiles, RefuseTilesThatDoNotFitTheirOutputs) {
  const tensor out = tensor::zeros({4, 6}, dtype::float32),
               in = tensor::zeros({4, 6}, dtype::float32);
  EXPECT_EQ(code_for(out, in, {.tile_shape = {2}}), errc::invalid_argument);
  EXPECT_EQ(code_for(out, in, {.tile_shape = {2, 0}}), errc::invalid_argument);
  const auto sink = std::make_shared<tensor_tiles>(out, dims{2, 3});
  EXPECT_EQ(code_for(sink, in, {.tile_shape = {4, 3}}), errc{});
  EXPECT_EQ(code_for(sink, in, {.tile_shape = {4, 7}}), errc{}) << "to the end of the axis";
  EXPECT_EQ(code_for(sink, in, {.tile_shape = {4, 4}}), errc::invalid_argument);
  const std::string reason = test::text_of([&] {
    map_tiles(store_first, {.tile_shape = {4, 4}}, sink, in);
  });
  EXPECT_NE(reason.find("wanted a multiple of 3"), std::string::npos) << reason;
  EXPECT_EQ(code_for(std::shared_ptr<const tile_source>(sink), in), errc::access_denied);
  EXPECT_EQ(code_of([&] { map_tiles([](tile_view<float>, tile_view<float>) {}, sink, sink); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              map_tiles([](tile_view<float>, tile_view<float>) {}, sink,
                        std::make_shared<tensor_tiles>(in, dims{2, 2}));
            }),
            errc::invalid_argument);
}

// A tile is stored when its own unit ends, before or after others would read it.
TEST(MapTiles, ReadTheirOutputInTilesOnlyTileByTile) {
  const tensor x = tensor::ones({6, 6}, dtype::float32);
  const auto sink = std::make_shared<tensor_tiles>(x, dims{2, 3});
  const auto twice = [](tile_view<float> to, tile_view<const float> from) {
    for (index_t i = 0; i < to.shape[0]; ++i)
      for (index_t j = 0; j < to.shape[1]; ++j) to(i, j) = 2 * from(i, j);
  };
  map_tiles(twice, sink, sink);
  for (const auto element : elements_of<float>(x)) ASSERT_EQ(element, 2);
  EXPECT_EQ(code_of([&] {
              map_tiles(twice, sink, with_halo(sink, {.widths = {{0, 1}}}));
            }),
            errc::invalid_argument);
  for (const auto element : elements_of<float>(x)) ASSERT_EQ(element, 2);
}

}  // namespace
}  // namespace shale
