#include "parallel/windows/window_sizes.hpp"

#include <algorithm>

#include "parallel/executor/read_ahead.hpp"

namespace shale::parallel {

namespace {

constexpr std::size_t written_window_bytes_max = std::size_t{16} << 20;
constexpr index_t usual_write_back_lag = 4;

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
  constexpr auto resident_windows =
      static_cast<std::size_t>(written_windows_ahead + 2 + usual_write_back_lag);
  return std::clamp(request.reserved_bytes / resident_windows, window_bytes_min,
                    written_window_bytes_max);
}

}  // namespace

window_sizes choose_window_sizes(const window_request& request) {
  const std::size_t wanted_bytes = wanted_window_bytes(request);
  const index_t tiles = tiles_in(wanted_bytes, request);
  window_sizes sizes{.tiles_per_window = tiles};
  if (request.writes && (!request.gaps || request.tile_bytes <= wanted_bytes)) {
    sizes.ahead = written_windows_ahead;
    sizes.write_back_lag = usual_write_back_lag;
    return sizes;
  }
  const index_t fitting = windows_that_fit(tiles, request);
  const std::size_t window_bytes = static_cast<std::size_t>(tiles) * request.tile_bytes;
  sizes.ahead = std::clamp<index_t>(fitting - ceil_div(request.workers, tiles) - 1, 0,
                                    static_cast<index_t>(window_bytes_ahead / window_bytes));
  if (fitting * tiles < request.workers)
    sizes.workers_max = static_cast<int>(std::max<index_t>(1, fitting * tiles));
  return sizes;
}

}  // namespace shale::parallel
