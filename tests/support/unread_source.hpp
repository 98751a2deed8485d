// A tile source that has only shapes, so that it may be larger than memory.
#pragma once

#include <gtest/gtest.h>

#include "shale/tile_source.hpp"

namespace shale::test {

/// Elements of one byte that nobody loads or stores.
class unread_source final : public tile_source {
 public:
  unread_source(const dims& shape, const dims& tile_shape)
      : shape_(shape), tile_shape_(tile_shape) {}

  shale::dtype dtype() const noexcept override { return shale::dtype::int8; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  bool writable() const noexcept override { return true; }
  std::uint64_t stored_bytes(const dims&) const override { return 0; }
  void load(const dims&, const tensor&) const override { ADD_FAILURE() << "a tile was loaded"; }
  void store(const dims&, const tensor&) override { ADD_FAILURE() << "a tile was stored"; }

 private:
  dims shape_;
  dims tile_shape_;
};

}  // namespace shale::test
