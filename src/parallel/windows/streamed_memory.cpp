#include "parallel/windows/streamed_memory.hpp"

#include <utility>

#include "storage/system/pages.hpp"

namespace shale::parallel {

namespace {

// Whether ascending tile numbers visit ascending bytes. That holds if each axis's stride is at
// least the extent in bytes of all axes inside it, lanes included.
bool walks_forwards(const plan& loop_plan, int operand) {
  const dims& strides = loop_plan.strides_bytes(operand);
  const region one{dims::filled(loop_plan.rank(), 0), dims::filled(loop_plan.rank(), 1)};
  const auto [first, last] = loop_plan.span_bytes(operand, one);
  index_t spanned = last - first;
  for (index_t axis = loop_plan.rank() - 1; axis >= 0; --axis) {
    if (loop_plan.shape()[axis] == 1) continue;
    if (strides[axis] < spanned) return false;
    spanned = strides[axis] * loop_plan.shape()[axis];
  }
  return true;
}

}  // namespace

streamed_memory::streamed_memory(streamed_operand operand, const plan& loop_plan,
                                 std::size_t budget_bytes)
    : operand_(std::move(operand)), plan_(&loop_plan) {
  const auto [first, end] = loop_plan.span_bytes(operand_.index, region::all(loop_plan.shape()));
  first_byte_ = static_cast<std::size_t>(first);
  end_byte_ = static_cast<std::size_t>(end);
  span_bytes_ = ceil_div(end_byte_ - first_byte_, static_cast<std::size_t>(loop_plan.tile_count()));
  forwards_ = walks_forwards(loop_plan, operand_.index) && range({0, 1}).bytes <= budget_bytes / 8;
  for_each_piece({0, 1}, [&](byte_range piece) {
    used_bytes_ += detail::align_up(piece.bytes, detail::system_page_bytes());
  });
  gaps_ = !forwards_ || used_bytes_ < span_bytes_ / 4 * 3;
}

byte_range streamed_memory::granules_of(byte_range piece, std::size_t granule) const {
  const std::size_t skew = reinterpret_cast<std::uintptr_t>(bytes().data()) % granule;
  const std::size_t end = piece.offset + piece.bytes;
  const std::size_t first = std::max((piece.offset + skew) / granule * granule, skew) - skew;
  const std::size_t last =
      std::min(ceil_div(end + skew, granule) * granule - skew, bytes().size_bytes());
  return {first, last - first};
}

byte_range streamed_memory::range(tile_numbers tiles) const {
  index_t first = 0;
  index_t end = 0;
  for (index_t tile = tiles.first; tile < tiles.end; ++tile) {
    const auto [a, b] = plan_->span_bytes(operand_.index, plan_->tile(tile));
    first = tile == tiles.first ? a : std::min(first, a);
    end = tile == tiles.first ? b : std::max(end, b);
  }
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(end - first)};
}

}  // namespace shale::parallel
