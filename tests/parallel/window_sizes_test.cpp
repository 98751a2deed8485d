#include "parallel/windows/window_sizes.hpp"

#include <gtest/gtest.h>

namespace shale::parallel {
namespace {

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;

// The windows that are resident at once: those that are read ahead, and those that have begun and
// not retired.
std::size_t resident_bytes(const window_request& request, const window_sizes& sizes) {
  return static_cast<std::size_t>((sizes.ahead + sizes.spread) * sizes.tiles_per_window) *
         request.tile_bytes;
}

// The windows that have begun and not retired suffice for the workers, each in a tile of its own,
// and for those whose write-back has not ended.
void expect_room_for_workers(const window_request& request, const window_sizes& sizes) {
  const index_t workers = sizes.workers_max > 0 ? sizes.workers_max : request.workers;
  EXPECT_LE(workers, request.workers);
  EXPECT_LE(workers, (sizes.spread - sizes.write_back_lag) * sizes.tiles_per_window);
}

TEST(WindowSizes, ResidentWindowsOfReadingCallsFitInTheReservedMemory) {
  for (const std::size_t reserved : {16 * mib, 64 * mib, 1024 * mib})
    for (const std::size_t tile : {4 * kib, 100 * kib, 1 * mib, 5 * mib, 15 * mib})
      for (const index_t workers : {1, 2, 7, 64})
        for (const bool gaps : {false, true}) {
          const window_request request{
              .reserved_bytes = reserved, .tile_bytes = tile, .workers = workers, .gaps = gaps};
          const window_sizes sizes = choose_window_sizes(request);
          SCOPED_TRACE(testing::Message()
                       << reserved << ' ' << tile << ' ' << workers << ' ' << gaps);
          EXPECT_LE(resident_bytes(request, sizes), reserved);
          expect_room_for_workers(request, sizes);
        }
}

TEST(WindowSizes, ResidentWindowsOfWritingCallsFitInTheReservedMemory) {
  for (const std::size_t reserved : {16 * mib, 64 * mib, 1024 * mib})
    for (const std::size_t tile : {4 * kib, 100 * kib, 256 * kib}) {
      const window_request request{
          .reserved_bytes = reserved, .tile_bytes = tile, .workers = 2, .writes = true};
      const window_sizes sizes = choose_window_sizes(request);
      EXPECT_EQ(sizes.write_back_lag, 4);
      EXPECT_EQ(sizes.workers_max, 0);
      EXPECT_LE(resident_bytes(request, sizes), reserved) << reserved << ' ' << tile;
    }
}

// stream.4: also with more workers than the memory has tiles.
TEST(WindowSizes, ManyWorkersThatWriteFitInTheReservedMemory) {
  for (const std::size_t reserved : {1 * mib, 8 * mib, 32 * mib, 100 * mib, 8192 * mib})
    for (const std::size_t tile : {4 * kib, 100 * kib, 300 * kib, 1 * mib})
      for (const index_t workers : {1, 2, 3, 7, 22, 64, 1000})
        for (const bool gaps : {false, true}) {
          const window_request request{.reserved_bytes = reserved,
                                       .tile_bytes = tile,
                                       .workers = workers,
                                       .writes = true,
                                       .gaps = gaps};
          const window_sizes sizes = choose_window_sizes(request);
          SCOPED_TRACE(testing::Message()
                       << reserved << ' ' << tile << ' ' << workers << ' ' << gaps);
          EXPECT_LE(resident_bytes(request, sizes), reserved);
          expect_room_for_workers(request, sizes);
        }
}

// 32 tiles fit. With 3 windows ahead and 4 in lag, 25 workers have a tile each.
TEST(WindowSizes, FewerWorkersWriteIfTheirTilesDoNotFit) {
  window_request request{
      .reserved_bytes = 32 * mib, .tile_bytes = mib, .workers = 64, .writes = true};
  const window_sizes sizes = choose_window_sizes(request);
  EXPECT_EQ(sizes.tiles_per_window, 1);
  EXPECT_EQ(sizes.ahead, 3);
  EXPECT_EQ(sizes.write_back_lag, 4);
  EXPECT_EQ(sizes.workers_max, 25);
  request.reserved_bytes = 8 * mib;
  const window_sizes little = choose_window_sizes(request);
  EXPECT_EQ(little.ahead, 2);
  EXPECT_EQ(little.write_back_lag, 2);
  EXPECT_EQ(little.workers_max, 4) << "half";
}

// 200 tiles fit, and 22 of them would make a window for few workers.
TEST(WindowSizes, ManyWorkersMakeSmallerWindows) {
  window_request request{
      .reserved_bytes = 200 * kib * 16, .tile_bytes = 16 * kib, .workers = 1, .writes = true};
  EXPECT_EQ(choose_window_sizes(request).tiles_per_window, 22);
  request.workers = 64;
  const window_sizes sizes = choose_window_sizes(request);
  EXPECT_EQ(sizes.tiles_per_window, 15);  // (200 - 64 + 1) / 9
  EXPECT_EQ(sizes.workers_max, 0);
  EXPECT_EQ(sizes.ahead, 3);
  EXPECT_EQ(sizes.write_back_lag, 4);
}

TEST(WindowSizes, FewerWorkersRunIfTheirTilesDoNotFit) {
  const window_sizes sizes =
      choose_window_sizes({.reserved_bytes = 10 * mib, .tile_bytes = 3 * mib, .workers = 8});
  EXPECT_EQ(sizes.tiles_per_window, 1);
  EXPECT_EQ(sizes.workers_max, 3);
  EXPECT_EQ(sizes.ahead, 0);
}

TEST(WindowSizes, OneTileAtATimeRunsEvenWithoutMemory) {
  for (const bool writes : {false, true}) {
    const window_sizes sizes = choose_window_sizes(
        {.reserved_bytes = 0, .tile_bytes = 3 * mib, .workers = 8, .writes = writes, .gaps = true});
    EXPECT_EQ(sizes.tiles_per_window, 1);
    EXPECT_EQ(sizes.workers_max, 1);
    EXPECT_EQ(sizes.ahead, 0);
    EXPECT_EQ(sizes.write_back_lag, 0);
  }
}

TEST(WindowSizes, TilesWithWideGapsMakeSmallWindows) {
  const window_request dense{.reserved_bytes = 64 * mib, .tile_bytes = 16 * kib, .workers = 2};
  window_request sparse = dense;
  sparse.gaps = true;
  sparse.tile_span_bytes = 2 * mib;
  EXPECT_EQ(choose_window_sizes(dense).tiles_per_window, 128);
  EXPECT_EQ(choose_window_sizes(sparse).tiles_per_window, 4);
}

}  // namespace
}  // namespace shale::parallel
