#include "shale/codec_choice.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "array/specification/specification.hpp"
#include "core/allocating.hpp"
#include "core/grid.hpp"
#include "format/codec/codec.hpp"
#include "shale/elementwise.hpp"
#include "shale/evaluate.hpp"
#include "shale/expr.hpp"

namespace shale {

namespace {

constexpr std::size_t block_bytes_max = std::size_t{1} << 20;
constexpr index_t blocks_max = 4;

/// A later pipeline has to store less than this share of what the chosen one stores.
constexpr double worthwhile = 0.9;

// Parts of chunks that lie at equal distances in the order of the file.
std::vector<region> sample_blocks(const array_spec& spec) {
  const dims& shape = spec.shape;
  const dims chunk = spec.chunk_shape ? *spec.chunk_shape : default_chunk_shape(shape, spec.dtype);
  dims inside = chunk;  // an array may be smaller than its chunks
  for (index_t axis = 0; axis < inside.size(); ++axis)
    inside[axis] = std::min(inside[axis], shape[axis]);
  const dims block = default_chunk_shape(inside, spec.dtype, block_bytes_max);
  const dims grid = detail::grid_of(shape, chunk);
  const index_t chunks = element_count(grid);
  const index_t count = std::min(chunks, blocks_max);
  std::vector<region> blocks;
  for (index_t number = 0; number < count; ++number) {
    // The first block lies half a distance behind the start. There are at most 2^59 chunks.
    const index_t at = (2 * number + 1) * chunks / (2 * count);
    region part{dims::filled(shape.size(), 0), block};
    detail::for_each_coordinate(at, grid, grid.size(), [&](index_t axis, index_t position) {
      part.start[axis] = std::min(position * chunk[axis], shape[axis] - block[axis]);
    });
    blocks.push_back(part);
  }
  return blocks;
}

std::vector<expr> sample_of(const expr& values, const array_spec& spec) {
  const expr all = astype(values.broadcast_to(spec.shape), spec.dtype);
  std::vector<expr> sample;
  for (const region& part : sample_blocks(spec)) {
    expr cut = all;
    for (index_t axis = 0; axis < part.shape.size(); ++axis)
      cut = cut.sliced(axis, {part.start[axis], part.start[axis] + part.shape[axis]});
    sample.push_back(cut);
  }
  return sample;
}

// Pipelines in the order of the time that they take to decode most data (decision 0169).
std::vector<codec_spec> candidates(dtype type, std::optional<int> bitround) {
  std::vector<codec_spec> all{
      {.bitround = bitround, .shuffle = shuffle_mode::none, .compression = std::nullopt}};
  for (const compression packs : {lz4(1), zstd(1), zstd(6)}) {
    for (const bool delta : {false, true}) {
      if (delta && !is_integer(type)) continue;
      for (const shuffle_mode shuffle :
           {shuffle_mode::none, shuffle_mode::byte, shuffle_mode::bit}) {
        if (shuffle == shuffle_mode::byte && item_bytes(type) == 1) continue;
        all.push_back(
            {.bitround = bitround, .delta = delta, .shuffle = shuffle, .compression = packs});
      }
    }
  }
  return all;
}

std::uint64_t stored_bytes(const codec_spec& spec, dtype type, std::span<const tensor> sample) {
  const format::codec coder(arrays::stages_of(spec, type), type);
  format::codec_workspace& workspace = format::codec_workspace::of_this_thread();
  std::uint64_t sum = 0;
  for (const tensor& block : sample)
    sum += coder.encode({block.data(), block.size_bytes()}, workspace).stored.size();
  return sum;
}

}  // namespace

codec_choice choose_codec(const expr& values, const array_spec& spec) {
  const std::vector<expr> parts = detail::allocating([&] {
    // Refuses what `create` would refuse.
    array_spec checked = spec;
    checked.kind = array_kind::chunked;
    checked.codec = {.bitround = spec.codec.bitround};
    checked.fill_value = 0;
    format::require_valid(arrays::make_record("sample", checked));
    return element_count(spec.shape) == 0 ? std::vector<expr>{} : sample_of(values, spec);
  });
  codec_choice choice{.codec = {.bitround = spec.codec.bitround}, .sample_bytes = 0, .trials = {}};
  if (parts.empty()) return choice;

  const std::vector<tensor> sample = eval_all(parts);
  for (const tensor& block : sample) choice.sample_bytes += block.size_bytes();
  return detail::allocating([&] {
    std::uint64_t least = 0;
    for (const codec_spec& codec : candidates(spec.dtype, spec.codec.bitround)) {
      const std::uint64_t stored = stored_bytes(codec, spec.dtype, sample);
      const bool is_better = choice.trials.empty() ||
                             static_cast<double>(stored) < worthwhile * static_cast<double>(least);
      choice.trials.push_back({codec, stored});
      if (!is_better) continue;
      choice.codec = codec;
      least = stored;
    }
    return choice;
  });
}

}  // namespace shale
