#include "tensor/copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tensor/strided_pair.hpp"

namespace shale::detail {

namespace {

struct item_16 {
  std::uint64_t halves[2];
};

template <class Item>
void copy_row(std::byte* to, index_t to_stride, const std::byte* from, index_t from_stride,
              index_t count) {
  constexpr auto dense = static_cast<index_t>(sizeof(Item));
  if (to_stride == dense && from_stride == dense) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Item));
    return;
  }
  for (index_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(Item));
}

// Copies a plane in which source and destination have different fastest axes. It works in blocks
// that fit in the L1 cache on both sides, so that each cache line is used completely while it is in
// the cache.
template <class Item>
void copy_plane(std::byte* to, const std::byte* from, const pair_axis& rows,
                const pair_axis& columns) {
  constexpr index_t block = std::min<index_t>(64, 256 / static_cast<index_t>(sizeof(Item)));
  for (index_t row = 0; row < rows.extent; row += block) {
    const index_t row_end = std::min(row + block, rows.extent);
    for (index_t column = 0; column < columns.extent; column += block) {
      const index_t count = std::min(block, columns.extent - column);
      for (index_t r = row; r < row_end; ++r)
        copy_row<Item>(to + r * rows.first_stride + column * columns.first_stride,
                       columns.first_stride,
                       from + r * rows.second_stride + column * columns.second_stride,
                       columns.second_stride, count);
    }
  }
}

template <class Item>
void copy_items(strided_pair pairs) {
  const index_t last = pairs.rank() - 1;
  // The destination's fastest axis is the last one. If the source has the same fastest axis, rows
  // are copied one by one. Otherwise the two fastest axes form planes, which are copied in blocks.
  index_t fastest = last;  // the source's axis with the smallest stride
  for (index_t axis = 0; axis < pairs.rank(); ++axis)
    if (std::abs(pairs[axis].second_stride) < std::abs(pairs[fastest].second_stride))
      fastest = axis;
  if (fastest == last) {
    const pair_axis inner = pairs.inner();
    pairs.for_each_outer(std::max<index_t>(last, 0), [&](std::byte* to, const std::byte* from) {
      copy_row<Item>(to, inner.first_stride, from, inner.second_stride, inner.extent);
      return true;
    });
    return;
  }
  std::rotate(&pairs[fastest], &pairs[fastest] + 1, &pairs[last]);  // moves it before the last axis
  const pair_axis rows = pairs[last - 1], columns = pairs[last];
  pairs.for_each_outer(last - 1, [&](std::byte* to, const std::byte* from) {
    copy_plane<Item>(to, from, rows, columns);
    return true;
  });
}

}  // namespace

void copy_serially(tensor& to, const tensor& from) {
  const strided_pair pairs(to, from);
  switch (to.item_bytes()) {
    case 1:
      return copy_items<std::uint8_t>(pairs);
    case 2:
      return copy_items<std::uint16_t>(pairs);
    case 4:
      return copy_items<std::uint32_t>(pairs);
    case 8:
      return copy_items<std::uint64_t>(pairs);
    default:
      return copy_items<item_16>(pairs);
  }
}

}  // namespace shale::detail
