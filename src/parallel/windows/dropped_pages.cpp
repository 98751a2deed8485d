#include "parallel/windows/dropped_pages.hpp"

#include <algorithm>

namespace shale::parallel {

namespace {

// Two operands that walk one file forwards, at most this far apart, share pages. The one that comes
// to them last drops them.
constexpr std::size_t near_bytes = std::size_t{64} << 20;

// Dropped ranges end at multiples of this, so that huge pages are dropped as a whole.
constexpr std::size_t drop_granule = std::size_t{2} << 20;

}  // namespace

dropped_pages::dropped_pages(std::span<const streamed_memory> operands, const page_survey& survey,
                             window_list windows)
    : operands_(operands), survey_(survey), windows_(windows) {
  for (const auto& operand : operands) {
    const auto sharing = std::count_if(operands.begin(), operands.end(), [&](const auto& other) {
      return other.bytes().shares_owner_with(operand.bytes());
    });
    progress_.push_back({.alone = sharing == 1, .dropped = operand.first_byte()});
  }
}

void dropped_pages::drop(index_t window) {
  const tile_numbers tiles = windows_.tiles(window);
  const page_survey::found before = survey_.at(window);
  const auto scope = before.resident ? eviction::process : eviction::system;
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    const streamed_memory& operand = operands_[k];
    const auto evict = [&](byte_range piece) { operand.bytes().evict(piece, scope); };
    if (!operand.forwards()) {
      drop_granules(operand, tiles);
      continue;
    }
    if (operand.written()) operand.bytes().finish_writeback(operand.range(tiles));
    if (!operand.has_gaps()) {
      drop_finished(k, window, scope);
      continue;
    }
    if (scope == eviction::system && progress_[k].alone) {
      if (before.gaps_empty && !operand.written()) evict(operand.range(tiles));
      else operand.for_each_piece(tiles, evict);
    }
    drop_finished(k, window, eviction::process);
  }
}

// A fault maps the whole large page of the page cache that it finds, so the granules around the
// pieces are dropped. Several pieces may lie in one granule.
void dropped_pages::drop_granules(const streamed_memory& operand, tile_numbers tiles) {
  byte_range last{0, 0};
  operand.for_each_piece(tiles, [&](byte_range piece) {
    if (operand.written()) operand.bytes().finish_writeback(piece);
    const byte_range granules = operand.granules_of(piece, drop_granule);
    if (granules.offset == last.offset) {
      last.bytes = std::max(last.bytes, granules.bytes);
      return;
    }
    if (last.bytes > 0) operand.bytes().evict(last, eviction::process);
    last = granules;
  });
  if (last.bytes > 0) operand.bytes().evict(last, eviction::process);
}

// Drops an operand's bytes before the first byte that the window after this one needs. If another
// operand walks the same file and comes to these bytes soon, they are kept for it.
void dropped_pages::drop_finished(std::size_t operand, index_t window, eviction scope) {
  // These are positions in the owner, so that different slices of one file can be compared.
  const auto needed_from = [&](const streamed_memory& memory) {
    const std::size_t from = window + 1 < windows_.count()
                                 ? memory.range(windows_.tiles(window + 1)).offset
                                 : memory.end_byte();
    return memory.bytes().owner_offset() + from;
  };
  const streamed_memory& memory = operands_[operand];
  const std::size_t base = memory.bytes().owner_offset();
  std::size_t bound = needed_from(memory);
  for (const auto& other : operands_) {
    if (!other.forwards() || !other.bytes().shares_owner_with(memory.bytes())) continue;
    const std::size_t needed_by_other = needed_from(other);
    if (needed_by_other < bound && bound - needed_by_other < near_bytes) bound = needed_by_other;
  }
  bound = bound > base ? bound - base : 0;
  if (bound < memory.end_byte()) {
    // Round down to a multiple of the granule in the file, where large pages of the page cache
    // begin.
    const std::size_t skew = memory.bytes().file_offset().value_or(0) % drop_granule;
    bound = std::max((bound + skew) / drop_granule * drop_granule, skew) - skew;
  }
  std::size_t& dropped = progress_[operand].dropped;
  if (bound <= dropped) return;
  memory.bytes().evict({dropped, bound - dropped}, scope);
  dropped = bound;
}

}  // namespace shale::parallel
