// Operands and results of a pass that are not strided tensors: a grid of tiles, each of which is
// loaded into memory or stored from it. Derive from `tile_source` to add a source of your own.
#pragma once

#include <cstdint>
#include <memory>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Elements that are loaded and stored tile by tile. The tile with index t begins at
/// t[a] * tile_shape[a] on each axis a, and is cut at the edge of the shape.
/// Throws   an exception of a source ends the engine call that uses the source; the call throws it
/// Threads  load, store and prefetch are called by several threads at once. A call of the engine
///          loads and stores a tile in one thread at a time; other calls may load the same tile
///          meanwhile. prefetch is called for any tile, also one that another thread loads
class tile_source {
 public:
  virtual ~tile_source();

  /// These never change. Both shapes have the same rank, and every extent of a tile is positive.
  /// Expressions and `eval_into` refuse any other source (invalid_argument).
  virtual shale::dtype dtype() const noexcept = 0;
  virtual const dims& shape() const noexcept = 0;
  virtual const dims& tile_shape() const noexcept = 0;

  /// Writes the elements of a tile into `values`, which has the shape of the tile after cutting.
  /// Throws   for chunked arrays io, corrupt, out_of_memory
  virtual void load(const dims& tile, const tensor& values) const = 0;

  /// Replaces all elements of a tile by those of `values`, which has its shape after cutting.
  /// Throws   access_denied unless overridden; for chunked arrays io, out_of_space, out_of_memory,
  ///          and invalid_argument after the transaction has ended
  virtual void store(const dims& tile, const tensor& values);

  /// Whether `store` may be called. False unless overridden.
  virtual bool writable() const noexcept { return false; }

  /// Identifies the elements: sources of the same elements return the same address. So an
  /// evaluation that writes one of them and reads another one reads the elements as they were
  /// before.
  virtual const void* identity() const noexcept { return this; }

  /// Starts reading the stored bytes of a tile. It may be called several times for a tile, and for
  /// tiles that are never loaded. Does nothing unless overridden.
  virtual void prefetch(const dims& tile) const noexcept;

  /// The bytes that `load` of this tile reads from the device, for statistics.
  /// Throws   for chunked arrays io, corrupt (when it reads the index of chunks)
  virtual std::uint64_t stored_bytes(const dims& tile) const = 0;
};

/// The region of a tile in an array of that shape.
/// Throws   invalid_argument (ranks differ, tile shape not positive, tile outside the shape)
region tile_region(const dims& shape, const dims& tile_shape, const dims& tile);

}  // namespace shale
