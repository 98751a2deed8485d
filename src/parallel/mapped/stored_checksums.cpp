#include "parallel/mapped/stored_checksums.hpp"

#include <algorithm>
#include <vector>

#include "parallel/executor/tile_loop.hpp"
#include "parallel/mapped/memory_pieces.hpp"

namespace shale::parallel {

namespace {

// The bytes that a thread compares at a time, at most. Pieces that are nearer to each other than
// this are compared together.
constexpr std::size_t range_bytes = std::size_t{4} << 20;

// Returns ranges of the storage that cover all elements. Ranges end at multiples of `range_bytes`
// in the owner, where segments end, too, so few segments belong to two ranges and are compared
// twice.
std::vector<byte_range> ranges_of(const dims& shape, const dims& strides_bytes, index_t first,
                                  index_t item, std::size_t skew) {
  std::vector<byte_range> ranges;
  for_each_memory_piece(
      shape, strides_bytes, first, item, static_cast<index_t>(range_bytes),
      [&](index_t begin, index_t end) {
        for (auto at = static_cast<std::size_t>(begin); at < static_cast<std::size_t>(end);) {
          const std::size_t stop = std::min(static_cast<std::size_t>(end),
                                            ((at + skew) / range_bytes + 1) * range_bytes - skew);
          ranges.push_back({at, stop - at});
          at = stop;
        }
      });
  return ranges;
}

void compare(const storage& bytes, const std::vector<byte_range>& ranges, executor& on) {
  parallel_for_tiles(on, static_cast<index_t>(ranges.size()),
                     [&](index_t number, int) {
                       bytes.compare_checksums(ranges[static_cast<std::size_t>(number)]);
                     },
                     {.counted = false});
}

}  // namespace

void compare_checksums_of(const plan& loop_plan, int index, const storage& bytes, executor& on) {
  if (loop_plan.tile_count() == 0) return;
  const plan::touched_elements touched =
      loop_plan.touched_by(index, region::all(loop_plan.shape()));
  compare(bytes,
          ranges_of(touched.shape, touched.strides_bytes, touched.first,
                    static_cast<index_t>(loop_plan.item_bytes(index)), bytes.owner_offset()),
          on);
}

void compare_checksums(const tensor& values, executor& on) {
  const auto extent = values.layout().extent();
  if (!compares_checksums(on, values.storage()) || !extent) return;
  const auto item = static_cast<index_t>(values.item_bytes());
  dims strides = values.strides();
  for (index_t& stride : strides) stride *= item;
  compare(values.storage(),
          ranges_of(values.shape(), strides, extent->first * item, item,
                    values.storage().owner_offset()),
          on);
}

}  // namespace shale::parallel
