#include "parallel/mapped/mapped_tiles.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/grid.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "parallel/mapped/file_stage.hpp"
#include "parallel/mapped/part_pieces.hpp"
#include "parallel/mapped/residency.hpp"
#include "shale/tile_source.hpp"
#include "storage/system/pages.hpp"
#include "tensor/parts.hpp"

namespace shale::parallel {

namespace {

// A part of a tile has at most so many pieces. If they are mapped, they take at most 8 MiB, with the
// neighbours that the kernel maps around them.
constexpr index_t pieces_max = 64;

// Parts that are not in the page cache are requested before they are read, so that the device has
// many requests at once. This is how many bytes are requested and not yet read, at least.
constexpr std::size_t requested_bytes = std::size_t{8} << 20;

// The number of stored bytes whose write-back may still be running.
constexpr std::size_t bytes_in_write_back_max = std::size_t{64} << 20;

// The most bytes of the pieces of a part.
std::size_t part_bytes_max(const tensor& values, const dims& tile_shape) {
  const std::size_t tile =
      static_cast<std::size_t>(element_count(tile_shape)) * values.item_bytes();
  return std::clamp(tile / 8, std::size_t{64} << 10, std::size_t{4} << 20);
}

index_t page_bytes() { return static_cast<index_t>(detail::system_page_bytes()); }

// Calls `visit(range)` for each piece of memory under `part`. Pieces that are less than a page
// apart are visited as one.
template <class Visit>
void for_each_near_piece(const tensor& part, Visit visit) {
  for_each_piece(part, page_bytes(), visit);
}

std::size_t bytes_of(const tensor& part) {
  return static_cast<std::size_t>(part.size()) * part.item_bytes();
}

}  // namespace

mapped_tiles::mapped_tiles(tensor values, const dims& tile_shape, checksum_use checksums,
                           memory_pool& pool)
    : values_(std::move(values)),
      tile_shape_(tile_shape),
      grid_(detail::grid_of(values_.shape(), tile_shape)),
      checksums_(checksums),
      pool_(pool),
      part_bytes_max_(part_bytes_max(values_, tile_shape)),
      found_(static_cast<std::size_t>(element_count(grid_))) {}

tensor mapped_tiles::part(const dims& tile) const {
  return detail::narrowed(values_, tile_region(values_.shape(), tile_shape_, tile));
}

// This is called before any page of the tile is read (copies.1).
mapped_tiles::found mapped_tiles::look_up(const dims& tile) const {
  auto& known = found_[static_cast<std::size_t>(detail::ravel(tile, grid_))];
  if (known == found::unknown) {
    residency pages;
    for_each_near_piece(part(tile), [&](byte_range piece) { pages.add(values_.storage(), piece); });
    known = pages.counts_as_resident() ? found::resident : found::cold;
  }
  return known;
}

// Cuts a tile, or a part of it, into parts with at most `pieces_max` pieces. A tensor with more
// pieces is halved along its widest stride, so the parts lie one after the other.
std::vector<mapped_tiles::moved_part> mapped_tiles::parts_of(const tensor& mapped,
                                                             const tensor& other) const {
  std::vector<moved_part> parts;
  const auto add = [&](const auto& self, const tensor& some, const tensor& same) -> void {
    const memory_pieces pieces = pieces_of_part(some, page_bytes());
    index_t count = 1;
    for (const index_t axis : pieces.axes) count *= some.shape()[axis];
    if (count <= pieces_max && static_cast<std::size_t>(count * pieces.bytes) <= part_bytes_max_) {
      parts.push_back({some, same});
      return;
    }
    index_t widest = -1;
    for (index_t axis = 0; axis < some.rank(); ++axis)
      if (some.shape()[axis] > 1 &&
          (widest < 0 || std::abs(some.strides()[axis]) > std::abs(some.strides()[widest])))
        widest = axis;
    const index_t half = some.shape()[widest] / 2;
    self(self, some.narrow(widest, 0, half), same.narrow(widest, 0, half));
    const index_t rest = some.shape()[widest] - half;
    self(self, some.narrow(widest, half, rest), same.narrow(widest, half, rest));
  };
  add(add, mapped, other);
  return parts;
}

void mapped_tiles::prefetch(const dims& tile) const noexcept {
  try {
    if (look_up(tile) != found::cold) return;
    const tensor values = part(tile);
    std::size_t requested = 0;
    for (const moved_part& next : parts_of(values, values)) {
      if (requested >= requested_bytes) return;
      request(next.mapped);
      requested += bytes_of(next.mapped);
    }
  } catch (...) {
    // A prefetch is only a hint: `load` will fail in the same way and report it.
  }
}

// Starts reading the pages of a part.
void mapped_tiles::request(const tensor& values) const {
  for_each_near_piece(values, [&](byte_range piece) { values_.storage().prefetch(piece); });
}

// Starts reading the pages that the pieces of a part only begin or end in: a write keeps the other
// bytes of such a page, and would wait for each of them.
void mapped_tiles::request_ends(const tensor& values) const {
  const storage& bytes = values_.storage();
  const auto page = static_cast<std::size_t>(page_bytes());
  const auto starts_inside = [&](std::size_t offset) {
    return reinterpret_cast<std::uintptr_t>(bytes.data() + offset) % page != 0;
  };
  for_each_piece(values, 0, [&](byte_range piece) {
    const std::size_t end = piece.offset + piece.bytes;
    if (starts_inside(piece.offset)) bytes.prefetch({piece.offset, 1});
    if (starts_inside(end)) bytes.prefetch({end - 1, 1});
  });
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
  const std::vector<moved_part> parts = parts_of(values, into);
  file_stage stage(part_bytes_max_, pool_);
  std::size_t next = 0, requested = 0;
  for (const auto& [from, to] : parts) {
    // A fault on a page that was not requested before would make the kernel read its neighbours.
    for (; cold && next < parts.size() && requested < requested_bytes; ++next) {
      request(parts[next].mapped);
      requested += bytes_of(parts[next].mapped);
    }
    requested -= std::min(requested, bytes_of(from));
    if (checksums_ == checksum_use::compared)
      for_each_near_piece(from, [&](byte_range piece) { bytes.compare_checksums(piece); });
    if (!cold || !stage.read(from, to)) {
      for_each_near_piece(from, [&](byte_range piece) { bytes.populate(piece); });
      copy_elements_here(to, from);
    }
    if (cold)
      for_each_near_piece(from, [&](byte_range piece) { bytes.evict(piece, eviction::system); });
    bytes.evict(span_of(from));
  }
  bytes.check();
}

void mapped_tiles::store(const dims& tile, const tensor& from) {
  const storage& bytes = values_.storage();
  const bool cold = look_up(tile) == found::cold;
  const std::vector<moved_part> parts = parts_of(part(tile), from);
  file_stage stage(part_bytes_max_, pool_);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const auto& [to, some] = parts[k];
    if (cold && k == 0) request_ends(to);
    if (cold && k + 1 < parts.size()) request_ends(parts[k + 1].mapped);
    if (!stage.write(to, some)) {
      for_each_near_piece(to,
                          [&](byte_range piece) { bytes.populate(piece, populate_for::store); });
      copy_elements_here(to, some);
      bytes.evict(span_of(to));
    }
    write_back({to, cold});
  }
}

// Starts the write-back of a part, and waits for older ones.
void mapped_tiles::write_back(const stored_part& stored) {
  values_.storage().start_writeback(span_of(stored.mapped));
  std::unique_lock lock(write_back_mutex_);
  in_write_back_.push_back(stored);
  bytes_in_write_back_ += bytes_of(stored.mapped);
  while (bytes_in_write_back_ > bytes_in_write_back_max) {
    const stored_part oldest = in_write_back_.front();
    in_write_back_.pop_front();
    bytes_in_write_back_ -= bytes_of(oldest.mapped);
    lock.unlock();
    end_write_back(oldest);
    lock.lock();
  }
}

void mapped_tiles::end_write_back(const stored_part& stored) const {
  const storage& bytes = values_.storage();
  bytes.finish_writeback(span_of(stored.mapped));
  if (stored.cold)
    for_each_near_piece(stored.mapped,
                        [&](byte_range piece) { bytes.evict(piece, eviction::system); });
}

void mapped_tiles::finish() {
  const std::lock_guard lock(write_back_mutex_);
  for (; !in_write_back_.empty(); in_write_back_.pop_front())
    end_write_back(in_write_back_.front());
  bytes_in_write_back_ = 0;
}

}  // namespace shale::parallel
