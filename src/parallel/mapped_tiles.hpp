// A mapped tensor as a grid of tiles, for operands that a call walks across their grain: each tile
// is copied a few pieces of memory at a time, which is all of the mapping that is resident.
//
// Invariants
//   squares.1  pages that were in the page cache before this call stay there; what it read cold it
//              drops again
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "parallel/plan.hpp"
#include "shale/tile_source.hpp"

namespace shale::parallel {

class mapped_tiles final : public tile_source {
 public:
  /// Over a tensor in a mapped file, without broadcast axes.
  mapped_tiles(tensor values, const dims& tile_shape);

  shale::dtype dtype() const noexcept override { return values_.dtype(); }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_shape_; }

  void load(const dims& tile, const tensor& into) const override;
  void store(const dims& tile, const tensor& from) override;
  bool writable() const noexcept override { return values_.writable(); }
  void prefetch(const dims& tile) const noexcept override;
  std::uint64_t stored_bytes(const dims& tile) const override;

  /// After the last store: waits until all is written back. Throws io
  void finish();

 private:
  enum class found : std::uint8_t { unknown, resident, cold };

  tensor part(const dims& tile) const;
  std::size_t number_of(const dims& tile) const noexcept;
  found look_up(const dims& tile) const;

  const tensor values_;
  const dims tile_shape_;
  mutable std::vector<std::atomic<found>> found_;  // by tile

  std::mutex behind_mutex_;
  std::deque<byte_range> behind_;  // stored, and being written back
};

/// The extents of tiles that are worth reading and writing in: `least`, made longer until all
/// `operands`, which have one shape and no broadcast axes, have pieces of memory of nearly one
/// length there, up to 64 KiB, as far as `most_elements` allows. Never less than `least`; axes grow
/// by doubling.
dims balanced_tile_shape(std::span<const plan_operand> operands, const dims& least,
                         index_t most_elements);

}  // namespace shale::parallel
