#include "array/elements/carried_chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "array/elements/prefetch.hpp"
#include "core/allocating.hpp"
#include "core/saturating.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

namespace {

// The share of the budget that the list of chunks may take, and the fewest chunks that are listed
// at once.
constexpr std::size_t lists_in_budget = 16;
constexpr std::size_t listed_min = 64;

// The share of the budget that the bytes of chunks may take.
constexpr std::size_t bytes_in_budget = 2;

class carrying {
 public:
  carrying(const stored_array& from, chunk_tiles& to, executor& on)
      : from_(from),
        to_(to),
        on_(on),
        codec_(from.record.chunked().stages, from.record.dtype),
        chunk_bytes_(static_cast<std::size_t>(format::chunk_bytes(from.record))) {}

  std::uint64_t carry_all() const {
    const std::size_t limit =
        std::max(on_.memory_bytes() / lists_in_budget / sizeof(format::numbered_chunk), listed_min);
    std::uint64_t carried = 0;
    for (std::uint64_t first = 0;;) {
      const std::vector<format::numbered_chunk> listed = list(first, limit);
      const parallel::held_tokens held(parallel::state_of(on_).tokens,
                                       listed.size() * sizeof(format::numbered_chunk));
      carry_listed(listed);
      carried += listed.size();
      if (listed.size() < limit) return carried;
      first = listed.back().number + 1;  // cannot wrap: numbers in the grid are far smaller
    }
  }

 private:
  std::vector<format::numbered_chunk> list(std::uint64_t first, std::size_t limit) const {
    return detail::reporting([&] { return "list the chunks of " + from_.label; },
                             [&] { return from_.view.chunks(from_.record, first, limit); });
  }

  // Reads ahead as chunk_tiles::read does.
  void carry_listed(const std::vector<format::numbered_chunk>& listed) const {
    const auto count = static_cast<index_t>(listed.size());
    const index_t ahead = chunks_ahead * on_.threads();
    const auto prefetch = [&](index_t number) {
      if (number >= count) return;
      const format::chunk_entry& entry = listed[static_cast<std::size_t>(number)].entry;
      prefetch_range(from_.view.descriptor(), {entry.offset, entry.stored_bytes});
    };
    std::uint64_t bytes = 0;
    for (const format::numbered_chunk& chunk : listed)
      detail::add_saturating(bytes, chunk.entry.stored_bytes);
    if (count > 1)
      for (index_t number = 0; number < ahead; ++number) prefetch(number);
    parallel::parallel_for_tiles(on_, count,
                                 [&](index_t number, int) {
                                   prefetch(number + ahead);
                                   carry_one(listed[static_cast<std::size_t>(number)]);
                                 },
                                 {.workers_max = workers(), .progress_bytes = bytes});
    parallel::state_of(on_).count.pass();
  }

  // A thread holds the stored bytes of one chunk.
  int workers() const noexcept {
    const std::size_t allowed = on_.memory_bytes() / bytes_in_budget / chunk_bytes_;
    return static_cast<int>(
        std::clamp<std::size_t>(allowed, 1, static_cast<std::size_t>(on_.threads())));
  }

  void carry_one(const format::numbered_chunk& chunk) const {
    const dims tile = format::chunk_index(from_.record.chunked(), chunk.number);
    const format::bytes_span stored = detail::reporting(
        [&] { return fmt::format("read chunk {} of {}", to_string(tile), from_.label); },
        [&] {
          if (!format::is_in_grid(from_.record, chunk.number))
            throw error(errc::corrupt, "a chunk index is damaged",
                        {fmt::format("chunk {} is outside the grid", chunk.number)});
          const format::chunk_entry& entry = chunk.entry;
          const auto bytes = static_cast<std::size_t>(entry.stored_bytes);
          codec_.require_form(bytes, entry.flags, chunk_bytes_);
          const auto staged = format::codec_workspace::of_this_thread().staging(bytes);
          from_.view.read_chunk(entry, staged);  // carried.1
          return staged;
        });
    to_.store_encoded(tile, {stored, chunk.entry.flags});
    auto& count = parallel::state_of(on_).count;
    count.read(stored.size());
    count.written(stored.size());
  }

  const stored_array& from_;
  chunk_tiles& to_;
  executor& on_;
  const format::codec codec_;
  const std::size_t chunk_bytes_;
};

}  // namespace

bool stored_alike(const format::array_record& a, const format::array_record& b) {
  return !a.is_dense() && !b.is_dense() && a.dtype == b.dtype && a.shape == b.shape &&
         a.chunked().chunk_shape == b.chunked().chunk_shape &&
         a.chunked().stages == b.chunked().stages && a.fill_value == b.fill_value;
}

std::uint64_t carry_chunks(const stored_array& from, chunk_tiles& to, executor& on) {
  return carrying(from, to, on).carry_all();
}

}  // namespace shale::arrays
