// Tests how often a call asks for its tiles, and what happens to them after a load has failed, or
// after the call was cancelled.
#include "parallel/sources/tiles_of_call.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/pass/run_pass.hpp"
#include "parallel/sources/read_region.hpp"
#include "support/failures.hpp"

namespace shale::parallel {
namespace {

// Tiles of one byte. Each load runs `body(number of the load, from 0)`, and writes nothing.
template <class Body>
class scripted_tiles final : public tile_source {
 public:
  scripted_tiles(index_t tiles, Body body) : shape_{tiles}, body_(std::move(body)) {}
  shale::dtype dtype() const noexcept override { return shale::dtype::int8; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims&, const tensor&) const override { body_(loads++); }
  void prefetch(const dims&) const noexcept override { ++prefetches; }
  mutable std::atomic<int> loads = 0, prefetches = 0;

 private:
  dims shape_;
  dims tile_shape_{1};
  Body body_;
};

// cache.3: a load that takes long, such as of a file on a lost network, is not repeated by each of
// the threads that wait for it.
TEST(FailedTiles, AreLoadedOnceForAllThreads) {
  constexpr int threads = 8;
  executor on({.threads = 1});
  std::atomic<int> begun = 0;
  const scripted_tiles source(2, [&](int number) {
    while (begun < threads) std::this_thread::yield();
    throw std::runtime_error("load " + std::to_string(number));
  });
  tiles_of_call cache(std::size_t{1} << 20, on);
  std::atomic<int> told = 0;
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int k = 0; k < threads; ++k)
    workers.emplace_back([&] {
      ++begun;
      try {
        cache.get(source, {0});
      } catch (const std::runtime_error& failure) {
        told += std::string(failure.what()) == "load 0";
      }
    });
  for (auto& each : workers) each.join();
  EXPECT_EQ(source.loads, 1);
  EXPECT_EQ(told, threads);
  EXPECT_THROW(cache.get(source, {1}), std::runtime_error) << "the call has failed";
  EXPECT_EQ(source.loads, 1);
}

// A unit that crosses many tiles would decode a whole row of them first.
TEST(CancelledTiles, AreNotLoadedAnyMore) {
  executor on({.threads = 1});
  const scripted_tiles source(100, [&](int number) {
    if (number == 2) on.cancel();
  });
  tiles_of_call cache(std::size_t{1} << 20, on);
  const auto gather = [&] {
    read_region(source, {.start = {0}, .shape = {100}, .step = {1}}, cache, on);
  };
  EXPECT_EQ(test::code_of(gather), errc::cancelled);
  EXPECT_EQ(source.loads, 3);
  on.resume();
  gather();
  EXPECT_EQ(source.loads, 100);
}

// Runs a pass over a source of rank 1 that is repeated along a new first axis, and returns how many
// units it had.
int run_repeated(const tile_source& source, const dims& shape, int threads) {
  executor on({.threads = threads});
  const axis_map seen = axis_map::identity(source.shape()).expand_dims(0).broadcast_to(shape);
  const tiled_elements tiles{.source = &source, .seen = seen};
  const std::vector<loop_operand> operands{tiled_operand(tiles, shape)};
  const way chosen = choose_way(operands, {}, on);
  std::atomic<int> units = 0;
  run_pass(operands, {}, chosen, on, [&](const unit&) { ++units; });
  return units;
}

TEST(PrefetchedTiles, AreAskedForOnceIfEachUnitNeedsTheSame) {
  for (const int threads : {1, 4}) {
    const scripted_tiles source(1, [](int) {});
    EXPECT_EQ(run_repeated(source, {64, 1 << 20}, threads), 64);
    EXPECT_EQ(source.loads, 1);
    EXPECT_EQ(source.prefetches, 1);
  }
}

// Each unit needs one of two tiles, in turn. Both are loaded before the third unit begins.
TEST(PrefetchedTiles, AreNotAskedForIfTheCacheHasThem) {
  const scripted_tiles source(2, [](int) {});
  EXPECT_EQ(run_repeated(source, {8 << 20, 2}, 1), 16);
  EXPECT_EQ(source.loads, 2);
  EXPECT_LE(source.prefetches, 4);
}

}  // namespace
}  // namespace shale::parallel
