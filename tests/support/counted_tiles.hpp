// A tile source that counts how often its tiles are loaded.
#pragma once

#include <atomic>
#include <cstdint>

#include "shale/tile_source.hpp"

namespace shale::test {

/// Numbers below 10007 in tiles of 100.
class counted_tiles final : public tile_source {
 public:
  explicit counted_tiles(index_t size) : shape_{size} {}
  shale::dtype dtype() const noexcept override { return dtype::int64; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    ++loads;
    for (index_t i = 0; i < into.size(); ++i)
      reinterpret_cast<std::int64_t*>(into.data())[i * into.stride(0)] =
          (tile[0] * tile_shape_[0] + i) * 7919 % 10007;
  }
  mutable std::atomic<int> loads = 0;

 private:
  dims shape_;
  dims tile_shape_{100};
};

}  // namespace shale::test
