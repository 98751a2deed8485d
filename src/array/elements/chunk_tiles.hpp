// Presents the chunks of an array as tiles of elements. It reads, verifies and decodes chunks, and
// encodes and stores them.
//
// Invariants
//   chunks.1  every stored chunk has its full size when decoded; beyond the array's edge it holds
//             the fill value
//   chunks.2  a chunk is absent if all of its elements have the bits of the fill value, either as
//             they are or after the codec's bitround
//
// Coding and device I/O run outside every lock, so that threads work on different chunks at once.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "array/elements/chunk_store.hpp"
#include "format/catalog/array_record.hpp"
#include "format/codec/codec.hpp"
#include "parallel/executor/decoded_tile_cache.hpp"
#include "parallel/sources/decoded_source.hpp"
#include "shale/executor.hpp"
#include "shale/tile_source.hpp"

namespace shale::arrays {

class chunk_places;

class chunk_tiles final : public tile_source, public parallel::decoded_source {
 public:
  /// `label` names the array in messages: "'dem' in survey.shale". With an owner, the chunks are
  /// those of a generation, and executors may keep them decoded.
  chunk_tiles(std::string label, const format::array_record& record,
              std::shared_ptr<chunk_store> store,
              std::shared_ptr<const parallel::tile_owner> owner = nullptr);

  shale::dtype dtype() const noexcept override { return dtype_; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return layout_.chunk_shape; }
  void load(const dims& tile, const tensor& into) const override;
  void store(const dims& tile, const tensor& values) override;
  bool writable() const noexcept override { return store_->writable(); }
  const void* identity() const noexcept override { return store_->identity(); }
  void prefetch(const dims& tile) const noexcept override;
  std::uint64_t stored_bytes(const dims& tile) const override;
  bool keeps_tiles() const noexcept override { return owner_ != nullptr; }
  tensor decoded_tile(const dims& tile, executor& on) const override;

  /// Stores `values` at places inside the tile. They have the array's dtype. If they do not cover
  /// the tile, it is loaded first. Threads that store parts of one tile take turns.
  void store_part(const dims& tile, const chunk_places& places, const tensor& values, executor& on);

  /// Stores a chunk whose stored bytes decode to all of its elements, with the fill value beyond
  /// the array's edge (chunks.1).
  void store_encoded(const dims& tile, const format::encoded_chunk& chunk);

  /// Reads the region, which lies inside the array, into a tensor of its shape and of the array's
  /// dtype.
  void read(const region& part, const tensor& result, executor& on) const;

  /// Stores `values`, which have the shape of the places and any dtype. A chunk that they cover
  /// only in part is loaded first.
  void write(const chunk_places& places, const tensor& values, executor& on);

  /// Loads chunks and stores them again, with the fill value beyond the array's edge (chunks.1).
  void store_again(std::span<const format::numbered_chunk> chunks, executor& on);

 private:
  void require_inside(const dims& tile) const;
  void require_tile(const dims& tile, const tensor& values) const;
  bool decode_stored(std::uint64_t number, const tensor& into) const;
  std::optional<tensor> decoded_chunk(const dims& tile, executor& on) const;
  void read_part(const dims& tile, const region& part, const tensor& into, bool kept,
                 executor& on) const;
  void decode(format::bytes_view stored, std::uint32_t flags, const tensor& into,
              memory_pool& pool) const;
  tensor whole_chunk(const tensor& values) const;
  chunk_claims::claim claim(const dims& tile);
  void replace(const dims& tile, const tensor& values);
  void fill(const tensor& into) const;
  bool is_fill(format::bytes_view elements) const noexcept;
  bool reads_as_fill(format::bytes_view chunk) const;
  int workers(executor& on) const noexcept;
  std::string frame(const char* doing, const dims& tile) const;

  std::string label_;
  shale::dtype dtype_;
  dims shape_;
  format::chunked_layout layout_;
  std::size_t chunk_bytes_;
  tensor fill_value_;  // rank 0
  bool fill_is_zero_;
  format::codec codec_;
  std::shared_ptr<chunk_store> store_;
  std::shared_ptr<const parallel::tile_owner> owner_;
  std::string form_;  // what decides how stored bytes are decoded
};

}  // namespace shale::arrays
