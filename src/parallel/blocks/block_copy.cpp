#include "parallel/blocks/block_copy.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "parallel/blocks/nontemporal_copy.hpp"
#include "parallel/blocks/staged_transpose.hpp"
#include "parallel/blocks/transposed_block.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/threads/of_thread.hpp"

namespace shale::parallel {

namespace {

// Stores one item into `count` neighbours. The item is loaded once, so the compiler need not expect
// that a store changes it. All but the first items are copied from the first ones by the C library,
// because it uses the widest stores of the processor.
template <class Item>
void fill_run(std::byte* to, const std::byte* from, index_t count) {
  constexpr auto width = static_cast<index_t>(sizeof(Item));
  constexpr index_t first_bytes = 512, copied_bytes_max = 4096;  // both stay in the L1 cache
  Item item;
  std::memcpy(&item, from, sizeof item);
  const index_t first = std::min(count, first_bytes / width);
  for (index_t i = 0; i < first; ++i) std::memcpy(to + i * width, &item, sizeof item);
  const index_t bytes = count * width;
  for (index_t done = first * width; done < bytes;) {
    const index_t copied = std::min({done, copied_bytes_max, bytes - done});
    std::memcpy(to + done, to, static_cast<std::size_t>(copied));
    done += copied;
  }
}

template <class Item>
bool is_staged(index_t inner, index_t outer) {
  return inner * outer * static_cast<index_t>(sizeof(Item)) >= staged_block_bytes_min;
}

// Copies a large transposed block; `store` stores a piece of a row. Rows are put together in memory
// that the thread keeps, not on the stack: a load of a tile source copies on the stack of the pass
// that needs the tile. The copy calls no code that could begin another copy, so one such memory is
// enough for each thread. If there is none, the block is copied line by line. Copies of a few
// elements do not pay for its registers.
template <class Item, class Store>
[[gnu::noinline]] void copy_staged(std::byte* const* data, const index_t* strides, index_t inner,
                                   index_t outer, Store store) {
  if (staged_rows* const memory = of_thread<staged_rows>::find())
    return copy_transposed_staged<Item>(data[0], strides[2], data[1], strides[1], inner, outer,
                                        *memory, store);
  copy_transposed<Item>(data[0], strides[2], data[1], strides[1], inner, outer);
}

void store_as_usual(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

template <class Item>
void copy_items(std::byte* const* data, const index_t* strides, index_t inner, index_t outer) {
  constexpr auto width = static_cast<index_t>(sizeof(Item));
  if (is_transposed(strides, sizeof(Item))) {
    if (is_staged<Item>(inner, outer))
      return copy_staged<Item>(data, strides, inner, outer, store_as_usual);
    return copy_transposed<Item>(data[0], strides[2], data[1], strides[1], inner, outer);
  }
  for (index_t row = 0; row < outer; ++row) {
    std::byte* to = data[0] + row * strides[2];
    const std::byte* from = data[1] + row * strides[3];
    if (strides[0] == width && strides[1] == width) {
      std::memcpy(to, from, static_cast<std::size_t>(inner) * sizeof(Item));
      continue;
    }
    if (strides[0] == width && strides[1] == 0) {
      fill_run<Item>(to, from, inner);
      continue;
    }
    for (index_t i = 0; i < inner; ++i)
      std::memcpy(to + i * strides[0], from + i * strides[1], sizeof(Item));
  }
}

// Copies a large transposed block with stores past the cache. Copies other blocks as usual.
template <class Item>
void copy_items_past_the_cache(std::byte* const* data, const index_t* strides, index_t inner,
                               index_t outer) {
  if (is_transposed(strides, sizeof(Item)) && is_staged<Item>(inner, outer))
    return copy_staged<Item>(data, strides, inner, outer,
                             [](std::byte* to, const std::byte* from, std::size_t bytes) {
                               copy_nontemporally(to, from, bytes);
                             });
  copy_items<Item>(data, strides, inner, outer);
}

struct item_16 {
  std::uint64_t halves[2];
};

}  // namespace

bool is_transposed(const index_t* strides_bytes, std::size_t item_bytes) noexcept {
  const auto width = static_cast<index_t>(item_bytes);
  return strides_bytes[0] == width && strides_bytes[3] == width && strides_bytes[1] != width;
}

kernel copy_kernel(std::size_t item_bytes) noexcept {
  switch (item_bytes) {
    case 1:
      return copy_items<std::uint8_t>;
    case 2:
      return copy_items<std::uint16_t>;
    case 4:
      return copy_items<std::uint32_t>;
    case 8:
      return copy_items<std::uint64_t>;
    case 16:
      return copy_items<item_16>;
  }
  assert(false && "no dtype has this width");
  return nullptr;
}

kernel copy_kernel_past_the_cache(std::size_t item_bytes) noexcept {
  switch (item_bytes) {
    case 1:
      return copy_items_past_the_cache<std::uint8_t>;
    case 2:
      return copy_items_past_the_cache<std::uint16_t>;
    case 4:
      return copy_items_past_the_cache<std::uint32_t>;
    case 8:
      return copy_items_past_the_cache<std::uint64_t>;
    case 16:
      return copy_items_past_the_cache<item_16>;
  }
  assert(false && "no dtype has this width");
  return nullptr;
}

void copy_elements_here(const tensor& to, const tensor& from) {
  const kernel copy = copy_kernel(to.item_bytes());
  const plan loop_plan(std::array{plan_operand{to.layout(), to.item_bytes()},
                                  plan_operand{from.layout(), from.item_bytes()}});
  // The plan's positions count from the first byte of each storage.
  const std::array bases{const_cast<std::byte*>(to.storage().data()),
                         const_cast<std::byte*>(from.storage().data())};
  for (index_t tile = 0; tile < loop_plan.tile_count(); ++tile)
    loop_plan.for_each_block(loop_plan.tile(tile), bases,
                             [copy](std::byte* const* data, const index_t* strides, index_t inner,
                                    index_t outer, auto&&) { copy(data, strides, inner, outer); });
}

}  // namespace shale::parallel
