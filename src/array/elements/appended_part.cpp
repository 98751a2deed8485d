#include "array/elements/appended_part.hpp"

#include <algorithm>

#include "array/elements/chunk_places.hpp"
#include "core/allocating.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "tensor/parts.hpp"

namespace shale::arrays {

appended_part::appended_part(std::shared_ptr<chunk_tiles> whole, const region& part, executor& on)
    : whole_(std::move(whole)), part_(part), tile_shape_(whole_->tile_shape()), on_(on) {
  for (index_t axis = 0; axis < part.shape.size(); ++axis)
    if (part.start[axis] % tile_shape_[axis] != 0)
      tile_shape_[axis] = std::min(tile_shape_[axis], part.shape[axis]);
}

dims appended_part::chunk_of(const dims& tile) const noexcept {
  dims chunk = tile;
  for (index_t axis = 0; axis < tile.size(); ++axis)
    chunk[axis] += part_.start[axis] / whole_->tile_shape()[axis];
  return chunk;
}

// The region of the whole array that a tile covers.
region appended_part::place_of(const dims& tile) const {
  region place = tile_region(part_.shape, tile_shape_, tile);
  for (index_t axis = 0; axis < tile.size(); ++axis) place.start[axis] += part_.start[axis];
  return place;
}

void appended_part::load(const dims& tile, const tensor& into) const {
  detail::allocating([&] {
    const region place = place_of(tile);
    const dims chunk = chunk_of(tile);
    const region covered = tile_region(whole_->shape(), whole_->tile_shape(), chunk);
    if (place == covered) return whole_->load(chunk, into);
    const tensor elements = tensor::empty(covered.shape, dtype(), &on_.pool());
    whole_->load(chunk, elements);
    parallel::copy_elements_here(into, detail::narrowed(elements, place, covered.start));
  });
}

void appended_part::store(const dims& tile, const tensor& values) {
  detail::allocating(
      [&] { whole_->store_part(chunk_of(tile), chunk_places(place_of(tile)), values, on_); });
}

void appended_part::prefetch(const dims& tile) const noexcept { whole_->prefetch(chunk_of(tile)); }

std::uint64_t appended_part::stored_bytes(const dims& tile) const {
  return whole_->stored_bytes(chunk_of(tile));
}

}  // namespace shale::arrays
