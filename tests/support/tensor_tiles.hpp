// A tile source over the elements of a tensor. It copies them one by one.
#pragma once

#include <cstring>
#include <utility>

#include "shale/error.hpp"
#include "shale/tile_source.hpp"
#include "support/random_tensors.hpp"

namespace shale::test {

/// Tiles of a tensor. Its tile `failing` cannot be loaded or stored.
class tensor_tiles final : public tile_source {
 public:
  tensor_tiles(tensor values, const dims& tile_shape, const dims& failing = {-1})
      : values_(std::move(values)), tile_shape_(tile_shape), failing_(failing) {}

  shale::dtype dtype() const noexcept override { return values_.dtype(); }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  bool writable() const noexcept override { return true; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    if (tile == failing_) throw error(errc::corrupt, "this tile is lost");
    copy_elements(part(tile), into);
  }
  void store(const dims& tile, const tensor& from) override {
    if (tile == failing_) throw error(errc::out_of_space, "no room for this tile");
    copy_elements(from, part(tile));
  }

 private:
  tensor part(const dims& tile) const {
    const region box = tile_region(values_.shape(), tile_shape_, tile);
    tensor result = values_;
    for (index_t axis = 0; axis < tile.size(); ++axis)
      result = result.narrow(axis, box.start[axis], box.shape[axis]);
    return result;
  }

  static void copy_elements(const tensor& from, const tensor& to) {
    const auto source = positions_of(from), target = positions_of(to);
    const auto item = static_cast<index_t>(from.item_bytes());
    auto* const bytes = const_cast<std::byte*>(to.storage().data());
    for (std::size_t i = 0; i < source.size(); ++i)
      std::memcpy(bytes + target[i] * item, from.storage().data() + source[i] * item,
                  from.item_bytes());
  }

  tensor values_;
  dims tile_shape_;
  dims failing_;
};

}  // namespace shale::test
