// Counts what an executor has done. Each part of the engine adds its own numbers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "parallel/threads/thread_number.hpp"
#include "shale/executor.hpp"

namespace shale::parallel {

/// The sums behind executor_statistics. Each thread adds to sums of its own, so that small calls of
/// many threads do not wait for each other's cache lines; `statistics` adds them up.
/// Threads  any, at any time; the numbers that `statistics` returns may be of slightly different
///          moments
class counters {
 public:
  void pass() noexcept { add(&part::passes, 1); }
  void tiles(std::uint64_t count) noexcept { add(&part::tiles, count); }
  void read(std::uint64_t bytes) noexcept { add(&part::bytes_read, bytes); }
  void written(std::uint64_t bytes) noexcept { add(&part::bytes_written, bytes); }

  /// Counts tiles and bytes of a small call, as the three members above.
  void work(std::uint64_t tiles, std::uint64_t read_bytes, std::uint64_t written_bytes) noexcept {
    const int number = thread_number::of_this_thread();
    part& to = parts_[static_cast<std::size_t>(number)];
    const bool alone = number < thread_number::count;
    add(to.tiles, tiles, alone);
    add(to.bytes_read, read_bytes, alone);
    add(to.bytes_written, written_bytes, alone);
  }

  void window() noexcept { add(&part::windows, 1); }
  void window_dropped() noexcept { add(&part::windows_dropped, 1); }

  /// A tile of a mapped operand was copied against storage order; its bytes are counted as read.
  void mapped_tile() noexcept { add(&part::mapped_tiles, 1); }

  /// A source delivered a tile of `bytes`, for which it read `stored_bytes`.
  void source_tile(std::uint64_t bytes, std::uint64_t stored_bytes) noexcept {
    read(bytes);
    add(&part::tiles_decoded, 1);
    add(&part::stored_bytes_read, stored_bytes);
  }

  /// A tile was found that an earlier call, or another running call, has decoded.
  void tile_found() noexcept { add(&part::tiles_found, 1); }

  /// All members but `scratch_bytes_peak`, which `memory_tokens` counts.
  executor_statistics statistics() const noexcept {
    return {.passes = get(&part::passes),
            .tiles = get(&part::tiles),
            .bytes_read = get(&part::bytes_read),
            .bytes_written = get(&part::bytes_written),
            .windows = get(&part::windows),
            .windows_dropped = get(&part::windows_dropped),
            .mapped_tiles = get(&part::mapped_tiles),
            .tiles_decoded = get(&part::tiles_decoded),
            .stored_bytes_read = get(&part::stored_bytes_read),
            .tiles_found = get(&part::tiles_found)};
  }

 private:
  using sum = std::atomic<std::uint64_t>;

  // The sums of one thread. The last part is for all threads that have no number. A part takes two
  // cache lines, because processors prefetch lines in pairs.
  struct alignas(128) part {
    sum passes = 0;
    sum tiles = 0;
    sum bytes_read = 0;
    sum bytes_written = 0;
    sum windows = 0;
    sum windows_dropped = 0;
    sum mapped_tiles = 0;
    sum tiles_decoded = 0;
    sum stored_bytes_read = 0;
    sum tiles_found = 0;
  };

  void add(sum part::*which, std::uint64_t more) noexcept {
    const int number = thread_number::of_this_thread();
    add(parts_[static_cast<std::size_t>(number)].*which, more, number < thread_number::count);
  }

  // `alone`: the part belongs to this thread, and no other thread stores to it.
  static void add(sum& to, std::uint64_t more, bool alone) noexcept {
    if (alone) to.store(to.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    else to.fetch_add(more, std::memory_order_relaxed);
  }

  std::uint64_t get(sum part::*which) const noexcept {
    std::uint64_t total = 0;
    for (const part& each : parts_) total += (each.*which).load(std::memory_order_relaxed);
    return total;
  }

  std::array<part, thread_number::count + 1> parts_;
};

}  // namespace shale::parallel
