// Tests how much of the budget a pass over tiles takes. The expected numbers are computed by hand.
#include "parallel/ways/load_memory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "parallel/executor/memory_tokens.hpp"
#include "parallel/pass/run_pass.hpp"
#include "support/unread_source.hpp"

namespace shale::parallel {
namespace {

using test::unread_source;

constexpr std::size_t mib = std::size_t{1} << 20;

// A pass over a source as it is.
struct pass_over {
  explicit pass_over(const unread_source& source, const executor& on)
      : tiles{&source, axis_map::identity(source.shape())},
        operands{tiled_operand(tiles, source.shape())},
        chosen(choose_way(operands, {}, on)) {}
  pass_over(const pass_over&) = delete;
  pass_over& operator=(const pass_over&) = delete;

  const tiled_elements tiles;
  const std::vector<loop_operand> operands;
  const way chosen;
};

// 64 tiles of 1 MiB.
const unread_source& large_source() {
  static const unread_source source({64, mib}, {1, mib});
  return source;
}

TEST(LoadMemory, CallsShareWhatOthersHaveLeft) {
  executor on({.threads = 4, .memory_bytes = 64 * mib});
  const memory_tokens& tokens = state_of(on).tokens;
  const pass_over pass(large_source(), on);
  {
    const load_memory first(pass.chosen, pass.operands, 0, on);
    EXPECT_EQ(first.workers(), 4);
    EXPECT_EQ(first.cache_bytes(), 16 * mib) << "a quarter";
    EXPECT_EQ(tokens.held_bytes(), 20 * mib);
    const load_memory second(pass.chosen, pass.operands, 0, on);
    EXPECT_EQ(second.workers(), 4);
    EXPECT_EQ(second.cache_bytes(), 11 * mib) << "a quarter of 44 MiB";
    EXPECT_EQ(tokens.held_bytes(), 35 * mib);
    const held_tokens others(state_of(on).tokens, 24 * mib);
    const load_memory third(pass.chosen, pass.operands, 0, on);
    EXPECT_EQ(third.workers(), 2) << "half of 5 MiB";
    EXPECT_EQ(third.cache_bytes(), 2 * mib) << "the tiles of two loads";
    EXPECT_EQ(tokens.held_bytes(), 63 * mib);
    const load_memory last(pass.chosen, pass.operands, 0, on);
    EXPECT_EQ(last.workers(), 1) << "one always works";
    EXPECT_EQ(last.cache_bytes(), 1 * mib);
    EXPECT_EQ(tokens.held_bytes(), 65 * mib);
  }
  EXPECT_EQ(tokens.held_bytes(), 0U);
}

TEST(LoadMemory, TheCacheIsNoLargerThanTheSources) {
  executor on({.threads = 4, .memory_bytes = 64 * mib});
  const unread_source small({3, 1000}, {2, 600});
  const pass_over pass(small, on);
  const load_memory memory(pass.chosen, pass.operands, 0, on);
  EXPECT_EQ(memory.workers(), 4);
  EXPECT_EQ(memory.cache_bytes(), 3000U);
  EXPECT_EQ(state_of(on).tokens.held_bytes(), 4 * 1200 + 3000U);
}

// Two sources of 20,000 elements have units of 52 x 20,000.
TEST(LoadMemory, RepeatedElementsAreGatheredOnce) {
  executor on({.threads = 2, .memory_bytes = 64 * mib});
  const unread_source source({20'000}, {20'000});
  const dims shape{20'000, 20'000};
  const axis_map seen = axis_map::identity({20'000});
  const tiled_elements rows{&source, seen.expand_dims(1).broadcast_to(shape)};
  const tiled_elements columns{&source, seen.expand_dims(0).broadcast_to(shape)};
  const std::vector<loop_operand> operands{tiled_operand(rows, shape),
                                           tiled_operand(columns, shape)};
  const way chosen = choose_way(operands, {}, on);
  const load_memory memory(chosen, operands, 0, on);
  EXPECT_EQ(memory.workers(), 2);
  EXPECT_EQ(memory.cache_bytes(), 40'000U);
  EXPECT_EQ(state_of(on).tokens.held_bytes(), 2 * (52 + 20'000) + 40'000U);
}

// Units that cut tiles come one after the other: the cache holds the tile for the next unit.
TEST(LoadMemory, TheCacheKeepsTilesThatUnitsCut) {
  executor tiny({.threads = 2, .memory_bytes = 1000});
  const unread_source source({20'000}, {20'000});
  const dims shape{20'000, 20'000};
  const axis_map seen = axis_map::identity({20'000});
  const tiled_elements rows{&source, seen.expand_dims(1).broadcast_to(shape)};
  const tiled_elements columns{&source, seen.expand_dims(0).broadcast_to(shape)};
  const std::vector<loop_operand> operands{tiled_operand(rows, shape),
                                           tiled_operand(columns, shape)};
  const way chosen = choose_way(operands, {}, tiny);
  const load_memory memory(chosen, operands, 0, tiny);
  EXPECT_EQ(memory.workers(), 1);
  EXPECT_GE(memory.cache_bytes(), 40'000U);
}

// Two operands of 2^62 bytes need 2^63 bytes for the load and as many for the cache.
TEST(LoadMemory, TilesBeyondAllMemoryLeaveNothing) {
  executor on({.threads = 2, .memory_bytes = 64 * mib});
  memory_tokens& tokens = state_of(on).tokens;
  const dims shape{index_t{1} << 22, index_t{1} << 40};
  const unread_source source(shape, shape);
  const tiled_elements tiles{.source = &source, .seen = axis_map::identity(shape)};
  const std::vector<loop_operand> operands{tiled_operand(tiles, shape),
                                           tiled_operand(tiles, shape)};
  const way chosen = choose_way(operands, {}, on);
  {
    const held_tokens others(tokens, mib);
    const load_memory memory(chosen, operands, 0, on);
    EXPECT_EQ(memory.workers(), 1);
    EXPECT_EQ(tokens.left_bytes(), 0U);
  }
  EXPECT_EQ(tokens.held_bytes(), 0U);
}

TEST(MemoryTokens, AreTakenAsFarAsTheyAreLeft) {
  memory_tokens tokens(100);
  EXPECT_EQ(tokens.take_at_most(60), 60U);
  EXPECT_EQ(tokens.take_at_most(60), 40U);
  EXPECT_EQ(tokens.take_at_most(60), 0U);
  tokens.take(10);
  EXPECT_EQ(tokens.take_at_most(60), 0U) << "more is held than the budget";
  tokens.give(30);
  EXPECT_EQ(tokens.take_at_most(60), 20U);
  EXPECT_EQ(tokens.held_bytes(), 100U);
  EXPECT_EQ(tokens.peak_bytes(), 110U);
}

// One load takes 2 MiB, of which 1 MiB is copied. With 64 threads, half of the budget holds 16
// loads, and a quarter the cache; 16 MiB are left.
TEST(LoadMemory, CopiesAheadFitInWhatIsLeft) {
  const pass_over pass(large_source(), executor({.threads = 1}));
  executor few({.threads = 4, .memory_bytes = 64 * mib});
  EXPECT_EQ(load_memory(pass.chosen, pass.operands, 1, few).ahead(), 2 * 4);
  executor many({.threads = 64, .memory_bytes = 64 * mib});
  {
    const load_memory memory(pass.chosen, pass.operands, 1, many);
    EXPECT_EQ(memory.workers(), 16);
    EXPECT_EQ(state_of(many).tokens.left_bytes(), 16 * mib);
    EXPECT_EQ(memory.ahead(), 16);
  }
  const held_tokens others(state_of(many).tokens, 64 * mib);
  EXPECT_EQ(load_memory(pass.chosen, pass.operands, 1, many).ahead(), 0) << "nothing is left";
}

TEST(LoadMemory, LoadsAheadAreThoseOfTheWorkers) {
  const pass_over pass(large_source(), executor({.threads = 1}));
  executor one({.threads = 64, .memory_bytes = 2 * mib});
  EXPECT_EQ(load_memory(pass.chosen, pass.operands, 0, one).workers(), 1);
  EXPECT_EQ(load_memory(pass.chosen, pass.operands, 0, one).ahead(), 2);
}

// Its elements are never looked at.
class tiles_of_2_mib final : public tile_source {
 public:
  explicit tiles_of_2_mib(index_t tiles = 8) : shape_{tiles, 2 * mib} {}
  shale::dtype dtype() const noexcept override { return shale::dtype::int8; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  void load(const dims&, const tensor&) const override { ++loads; }
  void prefetch(const dims&) const noexcept override {
    if (loads == 0) ++prefetched_before_loads;
  }

  mutable std::atomic<int> loads = 0, prefetched_before_loads = 0;

 private:
  dims shape_;
  dims tile_shape_{1, 2 * mib};
};

// Units of 4 x 8 bytes of a source get a halo of 1 and 2 bytes in front, and of 3 and 4 behind.
TEST(LoadMemory, HalosTakeTheirPart) {
  executor on({.threads = 2, .memory_bytes = 64 * mib});
  const unread_source source({40, 80}, {4, 8});
  const tiled_elements tiles{&source, axis_map::identity(source.shape())};
  operand_halo halo{.before = {1, 2}, .after = {3, 4}, .mode = halo_mode::wrap};
  std::vector<loop_operand> operands{tiled_operand(tiles, source.shape())};
  operands[0].halo = &halo;
  const pass_options options{.coordinates = true, .unit_shape = dims{4, 8}};
  const auto held = [&] {
    const load_memory memory(choose_way(operands, options, on), operands, 0, on);
    EXPECT_EQ(memory.workers(), 2);
    return state_of(on).tokens.held_bytes() - memory.cache_bytes();
  };
  EXPECT_EQ(held(), 2U * (8 * 14 + 8 * 14)) << "gathered, and put together with what is beyond";
  halo.mode = halo_mode::clipped;
  EXPECT_EQ(held(), 2U * (8 * 14)) << "all of it is gathered";
  halo.after = {300, 4};
  EXPECT_EQ(held(), 2U * (40 * 14)) << "no more than there is";
  // A tensor is used where it lies, except where a halo leaves it.
  operands[0] = {.values = tensor::zeros({40, 80}, dtype::int8), .halo = &halo};
  EXPECT_EQ(held(), 0U);
  halo = {.before = {1, 2}, .after = {3, 4}, .mode = halo_mode::edge};
  EXPECT_EQ(held(), 2U * (8 * 14));
}

// Half of the budget holds two loads exactly. The scratch memory of the same call, 4 KiB for each
// of two workers, does not make them fewer.
TEST(LoadMemory, ScratchMemoryOfTheCallTakesNoneFromItsLoads) {
  executor on({.threads = 2, .memory_bytes = 8 * mib});
  const tiles_of_2_mib source;
  const tiled_elements tiles{.source = &source, .seen = axis_map::identity(source.shape())};
  const std::vector<loop_operand> operands{tiled_operand(tiles, source.shape())};
  const pass_options options{.scratch_bytes = 4096};
  const way chosen = choose_way(operands, options, on);
  std::atomic<int> units = 0;
  run_pass(operands, options, chosen, on, [&](const unit&) { ++units; });
  EXPECT_EQ(units, 8);
  const std::size_t of_loads = 2 * 2 * mib, of_cache = 2 * 2 * mib, of_scratch = 2 * 4096;
  EXPECT_EQ(state_of(on).tokens.peak_bytes(), of_loads + of_cache + of_scratch);
}

TEST(LoadMemory, CallsOverFewTilesTakeNoneForOtherThreads) {
  executor on({.threads = 16, .memory_bytes = 1024 * mib});
  const tiles_of_2_mib source(2);
  const tiled_elements tiles{.source = &source, .seen = axis_map::identity(source.shape())};
  const std::vector<loop_operand> operands{tiled_operand(tiles, source.shape())};
  const pass_options options{.scratch_bytes = 4096};
  const way chosen = choose_way(operands, options, on);
  run_pass(operands, options, chosen, on, [&](const unit&) {});
  const std::size_t of_loads = 2 * 2 * mib, of_cache = 2 * 2 * mib, of_scratch = 2 * 4096;
  EXPECT_EQ(state_of(on).tokens.peak_bytes(), of_loads + of_cache + of_scratch);
}

// The budget lets one of 64 threads work: it asks for two loads ahead, and for the third when the
// first one begins.
TEST(LoadMemory, TilesAreNotRequestedForThreadsThatDoNotWork) {
  executor on({.threads = 64, .memory_bytes = 4 * mib});
  const tiles_of_2_mib source;
  const tiled_elements tiles{.source = &source, .seen = axis_map::identity(source.shape())};
  const std::vector<loop_operand> operands{tiled_operand(tiles, source.shape())};
  const way chosen = choose_way(operands, {}, on);
  run_pass(operands, {}, chosen, on, [&](const unit&) {});
  EXPECT_EQ(source.loads, 8);
  EXPECT_EQ(source.prefetched_before_loads, 3);
}

}  // namespace
}  // namespace shale::parallel
