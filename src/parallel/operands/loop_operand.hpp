// Defines the operands of a pass: tensors, and views of tile sources and sinks.
#pragma once

#include <span>
#include <vector>

#include "parallel/operands/halo.hpp"
#include "parallel/sources/axis_map.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace shale::parallel {

/// An operand in tiles: a view `seen` of a source that is read, or a sink that is written.
struct tiled_elements {
  const tile_source* source = nullptr;
  axis_map seen = {};
  tile_source* sink = nullptr;  // has the pass's shape

  shale::dtype dtype() const { return sink ? sink->dtype() : source->dtype(); }
};

/// One operand of a pass.
struct loop_operand {
  /// The elements. A tiled operand has a placeholder here, with the pass's shape and dtype: 16
  /// bytes of memory, and stride 0 along every axis.
  tensor values;
  bool written = false;

  /// With `written`: kernels also read the elements that the output held before.
  bool updated = false;

  /// Null for a tensor. Belongs to the caller of the pass.
  const tiled_elements* tiles = nullptr;

  /// If not null: an input whose units are brought in with a halo. Belongs to the caller of the
  /// pass, which has units of a given shape.
  const operand_halo* halo = nullptr;
};

/// Makes an operand that is read or written tile by tile, in a pass over `shape`.
loop_operand tiled_operand(const tiled_elements& tiles, const dims& shape);

/// Throws   access_denied (read-only), invalid_argument (two indices name one element)
void require_output(const tensor& out);

/// The same for an output of a call whose operands have been broadcast to `shape`.
/// Throws   also invalid_argument (another shape)
void require_output(const tensor& out, const dims& shape);

/// The bytes of all tensors that are only read. Broadcast elements, and bytes that several tensors
/// share, count once. Tensors of one storage count at most the span from the lowest byte to the
/// highest.
/// Cost     as count_bytes_read_once
std::uint64_t bytes_read_once(std::span<const loop_operand> operands) noexcept;

/// Whether the mapped operands need more than half of the budget. Then they cannot all stay
/// resident: large ones are read in windows, or copied tile by tile.
bool mapped_exceed_half_of_budget(std::span<const loop_operand> operands, const executor& on);

/// The addresses that a plan's positions count from.
std::vector<std::byte*> bases(std::span<const loop_operand> operands);

/// Bumps the version of each output's storage in its destructor: a pass that ends by an exception
/// may have written, too.
class version_bumps {
 public:
  explicit version_bumps(std::span<const loop_operand> operands) noexcept : operands_(operands) {}
  ~version_bumps();
  version_bumps(const version_bumps&) = delete;
  version_bumps& operator=(const version_bumps&) = delete;

 private:
  std::span<const loop_operand> operands_;
};

/// Throws   io (a mapped file lost bytes during the pass)
void check_storages(std::span<const loop_operand> operands);

}  // namespace shale::parallel
