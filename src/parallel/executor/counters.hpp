// Counts what an executor has done. Each part of the engine adds its own numbers.
#pragma once

#include <atomic>
#include <cstdint>

#include "shale/executor.hpp"

namespace shale::parallel {

/// The sums behind executor_statistics.
/// Threads  any, at any time; the numbers that `statistics` returns may be of slightly different
///          moments
class counters {
 public:
  void pass() noexcept { add(passes_, 1); }
  void tiles(std::uint64_t count) noexcept { add(tiles_, count); }
  void read(std::uint64_t bytes) noexcept { add(bytes_read_, bytes); }
  void written(std::uint64_t bytes) noexcept { add(bytes_written_, bytes); }
  void window() noexcept { add(windows_, 1); }
  void window_dropped() noexcept { add(windows_dropped_, 1); }

  /// A tile of a mapped operand was copied against storage order; its bytes are counted as read.
  void mapped_tile() noexcept { add(mapped_tiles_, 1); }

  /// A source delivered a tile of `bytes`, for which it read `stored_bytes`.
  void source_tile(std::uint64_t bytes, std::uint64_t stored_bytes) noexcept {
    read(bytes);
    add(tiles_decoded_, 1);
    add(stored_bytes_read_, stored_bytes);
  }

  /// A tile was found that an earlier call, or another running call, has decoded.
  void tile_found() noexcept { add(tiles_found_, 1); }

  /// All members but `scratch_bytes_peak`, which `memory_tokens` counts.
  executor_statistics statistics() const noexcept {
    return {.passes = get(passes_),
            .tiles = get(tiles_),
            .bytes_read = get(bytes_read_),
            .bytes_written = get(bytes_written_),
            .windows = get(windows_),
            .windows_dropped = get(windows_dropped_),
            .mapped_tiles = get(mapped_tiles_),
            .tiles_decoded = get(tiles_decoded_),
            .stored_bytes_read = get(stored_bytes_read_),
            .tiles_found = get(tiles_found_)};
  }

 private:
  using sum = std::atomic<std::uint64_t>;

  static void add(sum& to, std::uint64_t more) noexcept {
    to.fetch_add(more, std::memory_order_relaxed);
  }
  static std::uint64_t get(const sum& from) noexcept {
    return from.load(std::memory_order_relaxed);
  }

  sum passes_ = 0;
  sum tiles_ = 0;
  sum bytes_read_ = 0;
  sum bytes_written_ = 0;
  sum windows_ = 0;
  sum windows_dropped_ = 0;
  sum mapped_tiles_ = 0;
  sum tiles_decoded_ = 0;
  sum stored_bytes_read_ = 0;
  sum tiles_found_ = 0;
};

}  // namespace shale::parallel
