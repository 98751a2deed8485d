// Sums over windows by Fourier transforms, as a tile source: a tile is computed when a pass loads
// it, from a block of the operand. The block has the tile's elements and, beyond them, those that
// the kernel reaches (overlap-save). So the operand may be anything that an expression reads, and
// larger than memory.
//
// Invariants
//   blocks.1  the cuts into blocks depend on the shapes of the result and of the kernel alone, so
//             the bits of a result do not depend on layouts, threads or budget
//   blocks.2  the transform is periodic, so only sums whose window lies inside the block are kept;
//             positions of the block outside the operand hold zeros
//   blocks.3  two blocks of real numbers share a transform, as its real and its imaginary parts
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "ops/evaluation/compile.hpp"
#include "ops/evaluation/operand_parts.hpp"
#include "ops/leaves/block_transform.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

class transformed_windows final : public tile_source {
 public:
  /// `made` is a stage of windows, `input` its input, which reads no stages, and `weights` its
  /// factor. Neither is read before a tile is loaded.
  transformed_windows(const detail::stage& made, node_ref input, const tensor& weights);
  ~transformed_windows() override;

  shale::dtype dtype() const noexcept override { return type_; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return tile_shape_; }

  /// Throws   as `eval`
  void load(const dims& tile, const tensor& values) const override;

  /// Returns 0: the evaluations of the operand's parts count the bytes that they read.
  std::uint64_t stored_bytes(const dims&) const override { return 0; }

 private:
  struct prepared_kernel;
  const prepared_kernel& prepared() const;
  void read_block(const tensor& block, const region& box) const;
  std::vector<region> parts_in(const region& tile) const;

  operand_parts operand_;
  tensor weights_;  // contiguous, of complex128
  dims before_;
  shale::dtype type_;
  dims shape_;
  dims lengths_;     // of the transforms; 1 along axes on which the kernel has one element
  dims kept_;        // the sums of a block that are kept
  index_t paired_;   // the axis along which a transform has two blocks; -1: it has one
  dims tile_shape_;  // the sums that one transform makes
  dims block_;

  mutable std::mutex mutex_;
  mutable std::unique_ptr<const prepared_kernel> kernel_;  // by the first load, under the lock
};

/// The leaf of such a stage, whose input reads the given results of stages.
node_ref make_transformed_leaf(const detail::stage& made, const staged_values& values);

}  // namespace shale::ops
