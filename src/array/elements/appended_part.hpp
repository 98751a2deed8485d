// Presents a part of a chunked array as a tile source, so that `append` can evaluate expressions
// into it. (part_write writes parts with steps.)
#pragma once

#include <memory>

#include "array/elements/chunk_tiles.hpp"
#include "shale/executor.hpp"
#include "shale/region.hpp"
#include "shale/tile_source.hpp"

namespace shale::arrays {

/// Each tile lies in one chunk, and no other tile of the part lies in that chunk. So different
/// tiles can be stored at once. A chunk that a tile covers only in part is loaded before it is
/// stored.
class appended_part final : public tile_source {
 public:
  /// Along each axis, the part begins at a chunk, or it lies inside one row of chunks. It is not
  /// empty.
  appended_part(std::shared_ptr<chunk_tiles> whole, const region& part, executor& on);

  shale::dtype dtype() const noexcept override { return whole_->dtype(); }
  const dims& shape() const noexcept override { return part_.shape; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  void load(const dims& tile, const tensor& into) const override;
  void store(const dims& tile, const tensor& values) override;
  bool writable() const noexcept override { return whole_->writable(); }
  const void* identity() const noexcept override { return whole_->identity(); }
  void prefetch(const dims& tile) const noexcept override;
  std::uint64_t stored_bytes(const dims& tile) const override;

 private:
  dims chunk_of(const dims& tile) const noexcept;
  region place_of(const dims& tile) const;

  std::shared_ptr<chunk_tiles> whole_;
  region part_;
  dims tile_shape_;
  executor& on_;
};

}  // namespace shale::arrays
