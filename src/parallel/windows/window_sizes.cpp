#include "parallel/windows/window_sizes.hpp"

#include <algorithm>

#include "parallel/executor/read_ahead.hpp"

namespace shale::parallel {

namespace {

constexpr std::size_t written_window_bytes_max = std::size_t{16} << 20;
constexpr index_t usual_write_back_lag = 4;

// The windows of a writing call that are resident while no worker is in them.
constexpr index_t waiting_windows = written_windows_ahead + usual_write_back_lag;

constexpr std::size_t read_window_bytes_max = std::size_t{2} << 20;
constexpr std::size_t scattered_window_bytes_max = std::size_t{1} << 20;

constexpr std::size_t window_bytes_min = std::size_t{256} << 10;

// The tiles of a window that brings in about `window_bytes`. With their gaps, they span at most a
// sixteenth of the budget.
index_t tiles_in(std::size_t window_bytes, const window_request& request) {
  const std::size_t budget = 2 * request.reserved_bytes;
  std::size_t tiles = std::max<std::size_t>(1, window_bytes / request.tile_bytes);
  if (request.tile_span_bytes > 0) tiles = std::min(tiles, budget / 16 / request.tile_span_bytes);
  return static_cast<index_t>(std::max<std::size_t>(1, tiles));
}

// How many windows of `tiles` tiles each fit in memory at once.
index_t windows_that_fit(index_t tiles, const window_request& request) {
  const auto in_window = static_cast<std::size_t>(tiles);
  std::size_t fitting = request.reserved_bytes / (in_window * request.tile_bytes);
  if (request.gaps && request.tile_span_bytes > 0)
    fitting = std::min(fitting, 2 * request.reserved_bytes / (in_window * request.tile_span_bytes));
  return static_cast<index_t>(fitting);
}

// The bytes that a window should bring in.
std::size_t wanted_window_bytes(const window_request& request) {
  if (!request.writes)
    return std::clamp(request.reserved_bytes / 16, window_bytes_min,
                      request.gaps ? scattered_window_bytes_max : read_window_bytes_max);
  constexpr auto resident_windows = static_cast<std::size_t>(waiting_windows + 2);
  return std::clamp(request.reserved_bytes / resident_windows, window_bytes_min,
                    written_window_bytes_max);
}

// Limits the workers, and how many windows they may have begun, to the windows that fit beside
// those that are read ahead. If not even one fits, workers are in one window at a time.
void limit_work(window_sizes& sizes, index_t fitting, index_t workers) {
  const index_t tiles = sizes.tiles_per_window;
  const index_t begun = std::max<index_t>(fitting - sizes.ahead, 1);
  const index_t in_work = begun - sizes.write_back_lag;
  if (in_work * tiles < workers) sizes.workers_max = static_cast<int>(in_work * tiles);
  sizes.spread = std::min(
      begun, sizes.write_back_lag + ceil_div(std::min(workers, in_work * tiles), tiles) + 1);
}

window_sizes sizes_of_reading(const window_request& request, index_t tiles) {
  const index_t fitting = windows_that_fit(tiles, request);
  const std::size_t window_bytes = static_cast<std::size_t>(tiles) * request.tile_bytes;
  window_sizes sizes{.tiles_per_window = tiles};
  sizes.ahead = std::clamp<index_t>(fitting - ceil_div(request.workers, tiles) - 1, 0,
                                    static_cast<index_t>(window_bytes_ahead / window_bytes));
  limit_work(sizes, fitting, request.workers);
  return sizes;
}

// Many workers in large windows are in one window or two, and in small ones in as many windows as
// there are workers. So the tiles of a window become fewer if the usual windows do not fit. If
// windows of one tile do not fit either, at least half of those that do are for the workers.
window_sizes sizes_of_writing(const window_request& request, index_t tiles) {
  const index_t workers = request.workers;
  const auto fit = [&](index_t in_window) {
    return windows_that_fit(in_window, request) >=
           waiting_windows + ceil_div(workers, in_window) + 1;
  };
  // With t tiles, (waiting_windows + 1) * t + workers + t - 1 tiles are resident at most.
  if (!fit(tiles))
    tiles = std::clamp<index_t>(
        (windows_that_fit(1, request) - workers + 1) / (waiting_windows + 2), 1, tiles);
  const index_t fitting = windows_that_fit(tiles, request);
  window_sizes sizes{.tiles_per_window = tiles,
                     .ahead = written_windows_ahead,
                     .write_back_lag = usual_write_back_lag};
  if (!fit(tiles)) {
    const index_t share = std::max(fitting / 4, (fitting - workers - 1) / 2);
    sizes.ahead = std::min(sizes.ahead, share);
    sizes.write_back_lag = std::min(sizes.write_back_lag, share);
  }
  limit_work(sizes, fitting, workers);
  return sizes;
}

}  // namespace

window_sizes choose_window_sizes(const window_request& request) {
  const std::size_t wanted_bytes = wanted_window_bytes(request);
  const index_t tiles = tiles_in(wanted_bytes, request);
  const bool lags = request.writes && (!request.gaps || request.tile_bytes <= wanted_bytes);
  return lags ? sizes_of_writing(request, tiles) : sizes_of_reading(request, tiles);
}

}  // namespace shale::parallel
