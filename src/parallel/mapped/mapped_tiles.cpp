#include "parallel/mapped/mapped_tiles.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/grid.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "parallel/mapped/mapped_bytes.hpp"
#include "parallel/mapped/memory_pieces.hpp"
#include "parallel/mapped/residency.hpp"
#include "shale/tile_source.hpp"
#include "storage/system/pages.hpp"
#include "tensor/parts.hpp"

namespace shale::parallel {

namespace {

// The number of pieces that are mapped at once. With the neighbours that the kernel maps around
// them they take at most 8 MiB.
constexpr index_t pieces_at_once = 64;

// The number of stored tiles whose write-back may still be running.
constexpr std::size_t tiles_in_write_back = 2;

// Calls `visit(range)` for each piece of memory under `part`. Pieces that are less than a page
// apart are visited as one.
template <class Visit>
void for_each_piece(const tensor& part, Visit visit) {
  const auto item = static_cast<index_t>(part.item_bytes());
  dims strides = part.strides();
  for (index_t axis = 0; axis < strides.size(); ++axis) strides[axis] *= item;
  for_each_memory_piece(
      part.shape(), strides, static_cast<index_t>(span_of(part).offset), item,
      static_cast<index_t>(detail::system_page_bytes()), [&](index_t begin, index_t end) {
        visit(byte_range{static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)});
      });
}

// Calls `body(mapped part, other part)` for corresponding parts of two tensors. Each part of
// `mapped` has at most `pieces_at_once` pieces of memory; all parts together are the whole tensor.
// A tensor with more pieces is halved along its widest stride, so the parts lie one after the
// other.
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

}  // namespace

mapped_tiles::mapped_tiles(tensor values, const dims& tile_shape, checksum_use checksums)
    : values_(std::move(values)),
      tile_shape_(tile_shape),
      grid_(detail::grid_of(values_.shape(), tile_shape)),
      checksums_(checksums),
      found_(static_cast<std::size_t>(element_count(grid_))) {}

tensor mapped_tiles::part(const dims& tile) const {
  return detail::narrowed(values_, tile_region(values_.shape(), tile_shape_, tile));
}

// This is called before any page of the tile is read (copies.1).
mapped_tiles::found mapped_tiles::look_up(const dims& tile) const {
  auto& known = found_[static_cast<std::size_t>(detail::ravel(tile, grid_))];
  if (known == found::unknown) {
    residency pages;
    for_each_piece(part(tile), [&](byte_range piece) { pages.add(values_.storage(), piece); });
    known = pages.counts_as_resident() ? found::resident : found::cold;
  }
  return known;
}

void mapped_tiles::prefetch(const dims& tile) const noexcept {
  try {
    if (look_up(tile) == found::cold) request(part(tile));
  } catch (...) {
    // A prefetch is only a hint: `load` will fail in the same way and report it.
  }
}

// Starts reading the pages of a part.
void mapped_tiles::request(const tensor& values) const {
  for_each_piece(values, [&](byte_range piece) { values_.storage().prefetch(piece); });
}

void mapped_tiles::load(const dims& tile, const tensor& into) const {
  load_part(tile, part(tile), into);
}

void mapped_tiles::load_box(const region& box, const tensor& into) const {
  detail::for_each_tile_under(box, tile_shape_, [&](const dims& tile) {
    const region common =
        detail::intersection(box, tile_region(values_.shape(), tile_shape_, tile));
    load_part(tile, detail::narrowed(values_, common), detail::narrowed(into, common, box.start));
  });
}

// Copies a part of a tile, or all of it.
void mapped_tiles::load_part(const dims& tile, const tensor& values, const tensor& into) const {
  const storage& bytes = values_.storage();
  const bool cold = look_up(tile) == found::cold;
  if (checksums_ == checksum_use::compared)
    for_each_piece(values, [&](byte_range piece) { bytes.compare_checksums(piece); });
  // A fault on a page that was not requested before would make the kernel read its neighbours, too.
  if (cold) request(values);
  in_few_pieces(values, into, [&](const tensor& from, const tensor& to) {
    for_each_piece(from, [&](byte_range piece) { bytes.populate(piece); });
    copy_elements_here(to, from);
    if (cold) for_each_piece(from, [&](byte_range piece) { bytes.evict(piece, eviction::system); });
    bytes.evict(span_of(from));
  });
  bytes.check();
}

void mapped_tiles::store(const dims& tile, const tensor& from) {
  const storage& bytes = values_.storage();
  const tensor target = part(tile);
  in_few_pieces(target, from, [&](const tensor& to, const tensor& some) {
    for_each_piece(to, [&](byte_range piece) { bytes.populate(piece, populate_for::store); });
    copy_elements_here(to, some);
    bytes.evict(span_of(to));
  });
  const byte_range stored = span_of(target);
  bytes.start_writeback(stored);
  std::unique_lock lock(write_back_mutex_);
  in_write_back_.push_back(stored);
  while (in_write_back_.size() > tiles_in_write_back) {
    const byte_range oldest = in_write_back_.front();
    in_write_back_.pop_front();
    lock.unlock();
    bytes.finish_writeback(oldest);
    lock.lock();
  }
}

void mapped_tiles::finish() {
  const std::lock_guard lock(write_back_mutex_);
  for (; !in_write_back_.empty(); in_write_back_.pop_front())
    values_.storage().finish_writeback(in_write_back_.front());
}

}  // namespace shale::parallel
