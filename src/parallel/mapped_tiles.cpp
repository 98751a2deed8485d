#include "parallel/mapped_tiles.hpp"

#include <algorithm>
#include <cstdlib>

#include "parallel/copy.hpp"
#include "parallel/segments.hpp"
#include "storage/pages.hpp"

namespace shale::parallel {

namespace {

// Longer pieces gain nothing: a fault maps so many neighbours of its page.
constexpr std::size_t piece_bytes_max = std::size_t{64} << 10;

// Pieces that are mapped at once; with what the kernel maps around them, 8 MiB.
constexpr index_t pieces_at_once = 64;

// Stored tiles whose write-back may still be under way.
constexpr std::size_t written_tiles_behind = 2;

byte_range extent_of(const tensor& part) {
  const auto bounds = part.geometry().extent().value();
  return {static_cast<std::size_t>(bounds.first) * part.item_bytes(),
          static_cast<std::size_t>(bounds.last - bounds.first + 1) * part.item_bytes()};
}

// The pieces of memory under `part`; those on neighbouring pages are one.
template <class Visit>
void for_each_piece(const tensor& part, Visit visit) {
  const auto item = static_cast<index_t>(part.item_bytes());
  dims strides = part.strides();
  for (index_t axis = 0; axis < strides.size(); ++axis) strides[axis] *= item;
  for_each_segment(
      part.shape(), strides, static_cast<index_t>(extent_of(part).offset), item,
      static_cast<index_t>(detail::page_bytes()), [&](index_t begin, index_t end) {
        visit(byte_range{static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)});
      });
}

// Calls `body(some of mapped, the same of other)` for parts of few pieces of memory each, that
// together are all.
template <class Body>
void in_few_pieces(const tensor& mapped, const tensor& other, const Body& body) {
  index_t pieces = 0;
  for_each_piece(mapped, [&](byte_range) { ++pieces; });
  if (pieces <= pieces_at_once) return body(mapped, other);
  index_t widest = -1;
  for (index_t axis = 0; axis < mapped.rank(); ++axis)
    if (mapped.shape()[axis] > 1 &&
        (widest < 0 || std::abs(mapped.strides()[axis]) > std::abs(mapped.strides()[widest])))
      widest = axis;
  const index_t length = mapped.shape()[widest];
  for (const auto& [start, count] :
       {std::pair{index_t{0}, length / 2}, std::pair{length / 2, length - length / 2}})
    in_few_pieces(mapped.narrow(widest, start, count), other.narrow(widest, start, count), body);
}

tensor narrowed(const tensor& values, const region& where) {
  tensor result = values;
  for (index_t axis = 0; axis < where.shape.size(); ++axis)
    result = result.narrow(axis, where.start[axis], where.shape[axis]);
  return result;
}

}  // namespace

mapped_tiles::mapped_tiles(tensor values, const dims& tile_shape)
    : values_(std::move(values)), tile_shape_(tile_shape) {
  std::size_t tiles = 1;
  for (index_t axis = 0; axis < tile_shape_.size(); ++axis)
    tiles *= static_cast<std::size_t>(ceil_div(shape()[axis], tile_shape_[axis]));
  found_ = std::vector<std::atomic<found>>(tiles);
}

tensor mapped_tiles::part(const dims& tile) const {
  return narrowed(values_, tile_region(shape(), tile_shape_, tile));
}

std::size_t mapped_tiles::number_of(const dims& tile) const noexcept {
  index_t number = 0;
  for (index_t axis = 0; axis < tile.size(); ++axis)
    number = number * ceil_div(shape()[axis], tile_shape_[axis]) + tile[axis];
  return static_cast<std::size_t>(number);
}

// squares.1. Asked before anything is read; nine tenths, for neighbours share pages.
mapped_tiles::found mapped_tiles::look_up(const dims& tile) const {
  auto& known = found_[number_of(tile)];
  if (known == found::unknown) {
    std::size_t wanted = 0;
    std::size_t resident = 0;
    for_each_piece(part(tile), [&](byte_range piece) {
      wanted += piece.bytes;
      resident += values_.storage().resident_bytes(piece);
    });
    known = resident < wanted / 10 * 9 ? found::cold : found::resident;
  }
  return known;
}

void mapped_tiles::prefetch(const dims& tile) const noexcept {
  try {
    if (look_up(tile) == found::resident) return;
    for_each_piece(part(tile), [&](byte_range piece) { values_.storage().prefetch(piece); });
  } catch (...) {
    // A hint: whoever loads the tile meets the same failure and reports it.
  }
}

void mapped_tiles::load(const dims& tile, const tensor& into) const {
  const storage& bytes = values_.storage();
  const bool cold = look_up(tile) == found::cold;
  // A fault in what has not been asked for would read its neighbourhood as well.
  if (cold) prefetch(tile);
  in_few_pieces(part(tile), into, [&](const tensor& from, const tensor& to) {
    for_each_piece(from, [&](byte_range piece) { bytes.populate(piece); });
    copy_elements_here(to, from);
    if (cold) for_each_piece(from, [&](byte_range piece) { bytes.evict(piece, eviction::system); });
    bytes.evict(extent_of(from));
  });
  bytes.check();
}

void mapped_tiles::store(const dims& tile, const tensor& from) {
  const storage& bytes = values_.storage();
  const tensor target = part(tile);
  in_few_pieces(target, from, [&](const tensor& to, const tensor& some) {
    for_each_piece(to, [&](byte_range piece) { bytes.populate(piece, populate_for::store); });
    copy_elements_here(to, some);
    bytes.evict(extent_of(to));
  });
  const byte_range stored = extent_of(target);
  bytes.start_writeback(stored);
  std::unique_lock lock(behind_mutex_);
  behind_.push_back(stored);
  while (behind_.size() > written_tiles_behind) {
    const byte_range oldest = behind_.front();
    behind_.pop_front();
    lock.unlock();
    bytes.finish_writeback(oldest);
    lock.lock();
  }
}

void mapped_tiles::finish() {
  const std::lock_guard lock(behind_mutex_);
  for (; !behind_.empty(); behind_.pop_front()) values_.storage().finish_writeback(behind_.front());
}

std::uint64_t mapped_tiles::stored_bytes(const dims& tile) const { return part(tile).size_bytes(); }

dims balanced_tile_shape(std::span<const plan_operand> operands, const dims& least,
                         index_t most_elements) {
  const dims& shape = operands.front().where.shape();
  // Of each operand, its axes from the narrowest stride to the widest.
  std::vector<dims> orders;
  for (const auto& each : operands) {
    dims order;
    for (index_t axis = 0; axis < shape.size(); ++axis) order.push_back(axis);
    std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) {
      return std::abs(each.where.strides()[a]) < std::abs(each.where.strides()[b]);
    });
    orders.push_back(order);
  }
  dims tile = least;
  for (;;) {
    // The operand whose pieces are shortest, and its axis that would make them longer.
    std::size_t shortest = piece_bytes_max;
    index_t axis = -1;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      std::size_t piece = operands[k].item_bytes;
      for (const index_t next : orders[k]) {
        piece *= static_cast<std::size_t>(tile[next]);
        if (tile[next] == shape[next]) continue;
        if (piece < shortest) {
          shortest = piece;
          axis = next;
        }
        break;
      }
    }
    if (axis < 0) return tile;
    const index_t before = tile[axis];
    tile[axis] = std::min(2 * before, shape[axis]);
    if (element_count(tile) > most_elements) {
      tile[axis] = before;
      return tile;
    }
  }
}

}  // namespace shale::parallel
