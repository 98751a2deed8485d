#include "parallel/windows/window_sizes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace shale::parallel {
namespace {

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;

// The windows that are resident at once: read ahead, in work, and waiting for their write-back.
std::size_t resident_bytes(const window_request& request, const window_sizes& sizes) {
  const index_t workers = sizes.workers_max > 0
                              ? std::min<index_t>(sizes.workers_max, request.workers)
                              : request.workers;
  const index_t in_work = (workers + sizes.tiles_per_window - 1) / sizes.tiles_per_window;
  const index_t windows = sizes.ahead + in_work + sizes.write_back_lag;
  return static_cast<std::size_t>(windows * sizes.tiles_per_window) * request.tile_bytes;
}

TEST(WindowSizes, ResidentWindowsOfReadingCallsFitInTheReservedMemory) {
  for (const std::size_t reserved : {16 * mib, 64 * mib, 1024 * mib})
    for (const std::size_t tile : {4 * kib, 100 * kib, 1 * mib, 5 * mib, 15 * mib})
      for (const index_t workers : {1, 2, 7, 64})
        for (const bool gaps : {false, true}) {
          const window_request request{
              .reserved_bytes = reserved, .tile_bytes = tile, .workers = workers, .gaps = gaps};
          const window_sizes sizes = choose_window_sizes(request);
          EXPECT_LE(resident_bytes(request, sizes), reserved)
              << reserved << ' ' << tile << ' ' << workers << ' ' << gaps;
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
