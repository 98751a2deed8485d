// Sorts items that are all different, or whose equal items are identical: keys, and pairs of a key
// and an index. Whole sequences are sorted by Highway, and long ones in pieces that threads share.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include <hwy/contrib/sort/vqsort.h>

#include "ops/sorting/row_shape.hpp"

namespace shale::ops {

using wide_pair = hwy::uint128_t;  // the key in the upper half, the index in the lower one

template <class Item>
bool is_before(const Item& a, const Item& b) {
  return a < b;
}
inline bool is_before(const wide_pair& a, const wide_pair& b) {
  return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}

/// Sorts a short sequence.
template <class Item>
void insertion_sort(Item* items, index_t count) {
  for (index_t i = 1; i < count; ++i) {
    const Item item = items[i];
    index_t at = i;
    for (; at > 0 && is_before(item, items[at - 1]); --at) items[at] = items[at - 1];
    items[at] = item;
  }
}

/// Sorts bytes by counting each of their 256 values.
inline void counting_sort(std::uint8_t* items, index_t count) {
  index_t counts[256] = {};
  for (index_t i = 0; i < count; ++i) ++counts[items[i]];
  for (int value = 0; value < 256; ++value) {
    std::memset(items, value, static_cast<std::size_t>(counts[value]));
    items += counts[value];
  }
}

/// Sorts a sequence on the calling thread. Highway takes its memory from the stack, and each of its
/// calls costs as much as the insertion of about 36 items.
template <class Item>
void sort_items(Item* items, index_t count) {
  constexpr index_t inserted_max = 36;
  if (count <= inserted_max) insertion_sort(items, count);
  else if constexpr (sizeof(Item) == 1) counting_sort(items, count);
  else hwy::Sorter()(items, static_cast<std::size_t>(count), hwy::SortAscending());
}

/// How many of the first `taken` items of the merged sequence are from `a`.
template <class Item>
index_t taken_from_first(const Item* a, index_t a_count, const Item* b, index_t b_count,
                         index_t taken) {
  index_t low = taken > b_count ? taken - b_count : 0;
  index_t high = taken < a_count ? taken : a_count;
  while (low < high) {
    const index_t middle = low + (high - low) / 2;
    if (is_before(b[taken - middle - 1], a[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

template <class Item>
void merge(const Item* a, const Item* a_end, const Item* b, const Item* b_end, Item* to) {
  while (a != a_end && b != b_end) {
    const bool second = is_before(*b, *a);
    *to++ = second ? *b : *a;
    b += second ? 1 : 0;
    a += second ? 0 : 1;
  }
  while (a != a_end) *to++ = *a++;
  while (b != b_end) *to++ = *b++;
}

/// Sorts `count` items into `out`. `fill(to, first, end)` makes the items `first` … `end` - 1.
/// `pieces` is a power of two; `spare` has room for all items, unless there is only one piece.
/// Throws   cancelled, exceptions of `fill`
template <class Item, class Fill>
void sort_in_pieces(Item* out, Item* spare, index_t count, index_t pieces, const Fill& fill,
                    executor& on) {
  const equal_pieces bounds(count, pieces);
  Item* now = out;
  Item* next = spare;
  for (index_t merged = 1; merged < pieces; merged *= 2) std::swap(now, next);
  parallel::parallel_for_tiles(
      on, pieces,
      [&](index_t piece, int) {
        const index_t first = bounds.start(piece), end = bounds.start(piece + 1);
        fill(now + first, first, end);
        sort_items(now + first, end - first);
      },
      {.progress_bytes = static_cast<std::uint64_t>(count) * sizeof(Item)});
  for (index_t width = 1; width < pieces; width *= 2, std::swap(now, next))
    parallel::parallel_for_tiles(on, pieces, [&](index_t unit, int) {
      const index_t left = unit / (2 * width) * (2 * width);
      const index_t begin = bounds.start(left);
      const Item* const a = now + begin;
      const index_t a_count = bounds.start(left + width) - begin;
      const Item* const b = a + a_count;
      const index_t b_count = bounds.start(left + 2 * width) - begin - a_count;
      const index_t first = bounds.start(unit) - begin, end = bounds.start(unit + 1) - begin;
      const index_t i = taken_from_first(a, a_count, b, b_count, first);
      const index_t j = taken_from_first(a, a_count, b, b_count, end);
      merge(a + i, a + j, b + (first - i), b + (end - j), next + begin + first);
    });
}

}  // namespace shale::ops
