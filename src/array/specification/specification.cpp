#include "array/specification/specification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "array/specification/new_names.hpp"
#include "core/enumerator.hpp"
#include "core/printable.hpp"
#include "format/bytes/file_layout.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "shale/error.hpp"
#include "shale/layout.hpp"

namespace shale {

namespace {

// Bytes of a chunk along its last axis: whole pages, long enough for the prefetcher and for
// shuffles.
constexpr std::size_t chunk_row_bytes = 8192;

// The largest r with r^k <= value.
index_t whole_root(index_t value, index_t k) {
  const auto power_fits = [&](index_t root) {
    index_t left = value;
    for (index_t i = 0; i < k; ++i) left /= root;
    return left >= 1;
  };
  index_t root = 1;
  while (power_fits(root * 2)) root *= 2;
  for (index_t step = root / 2; step > 0; step /= 2)
    if (power_fits(root + step)) root += step;
  return root;
}

index_t power_of_two_below(index_t value) {
  index_t power = 1;
  while (power <= value / 2) power *= 2;
  return power;
}

}  // namespace

dims default_chunk_shape(const dims& shape, dtype type, std::size_t target_bytes) {
  const auto item = item_bytes(type);
  static_cast<void>(element_count(shape));  // throws if the shape is impossible
  const index_t target = std::max<index_t>(1, static_cast<index_t>(target_bytes / item));
  const index_t rank = shape.size();
  dims chunk = dims::filled(rank, 1);
  if (rank == 0) return chunk;

  // The last axis gets whole pages. The other axes share the rest evenly, from the back, so that
  // the axes in front get the share that a short axis cannot use.
  index_t left = target;
  const index_t row = std::max<index_t>(1, static_cast<index_t>(chunk_row_bytes / item));
  for (index_t axis = rank - 1; axis >= 0; --axis) {
    const index_t share =
        axis == rank - 1 ? std::min(row, left) : power_of_two_below(whole_root(left, axis + 1));
    chunk[axis] = std::max<index_t>(1, std::min(shape[axis], share));
    left = std::max<index_t>(1, left / chunk[axis]);
  }
  // If something is left, it lengthens the later axes.
  for (index_t axis = rank - 1; axis >= 0; --axis) {
    while (chunk[axis] < shape[axis] && left >= 2) {
      chunk[axis] = std::min(shape[axis], chunk[axis] * 2);
      left /= 2;
    }
  }
  return chunk;
}

namespace arrays {

namespace {

using format::codec_stage;
using format::stage_kind;

[[noreturn]] void throw_spec(std::string_view name, const char* problem, std::string detail) {
  throw error(errc::invalid_argument, fmt::format("{}: {}", detail::in_quotes(name), problem),
              {std::move(detail)});
}

format::chunked_layout make_chunked(std::string_view name, const array_spec& spec) {
  format::chunked_layout layout;
  layout.chunk_shape =
      spec.chunk_shape ? *spec.chunk_shape : default_chunk_shape(spec.shape, spec.dtype);
  if (layout.chunk_shape.size() != spec.shape.size())
    throw_spec(name, "the chunk shape has another rank than the array",
               fmt::format("got chunks of {} for the shape {}", to_string(layout.chunk_shape),
                           to_string(spec.shape)));
  dims grid;
  for (index_t axis = 0; axis < spec.shape.size(); ++axis) {
    if (layout.chunk_shape[axis] < 1)
      throw_spec(name, "a chunk extent is below 1",
                 fmt::format("got length {} along axis {}", layout.chunk_shape[axis], axis));
    grid.push_back(ceil_div(spec.shape[axis], layout.chunk_shape[axis]));
  }
  layout.grid_capacity = format::capacity_with_room(grid);
  layout.stages = stages_of(spec.codec, spec.dtype);
  return layout;
}

// Refuses every part of the specification that a dense array would ignore.
void require_dense(std::string_view name, const array_spec& spec,
                   std::span<const std::byte> fill_value) {
  if (spec.chunk_shape)
    throw_spec(name, "a dense array has no chunks", "ask for array_kind::chunked");
  if (!(spec.codec == codec_spec{}))
    throw_spec(name, "a dense array is not compressed", "ask for array_kind::chunked");
  if (std::any_of(fill_value.begin(), fill_value.end(),
                  [](std::byte byte) { return byte != std::byte{0}; }))
    throw_spec(name, "a dense array starts as zeros",
               "got the fill value " + spec.fill_value.to_string() +
                   "; write it into the array, or ask for array_kind::chunked");
}

}  // namespace

void require_storable(std::string_view name, const dims& shape, dtype type) {
  element_count(shape);  // refuses negative extents
  std::optional<std::uint64_t> bytes = item_bytes(type);
  for (const index_t extent : shape)
    if (bytes)
      bytes = checked_mul(*bytes, static_cast<std::uint64_t>(std::max<index_t>(extent, 1)));
  if (!bytes || *bytes > format::file_bytes_max)
    throw_spec(name, "more elements than any container holds",
               fmt::format("got shape {} of {}, at most {} bytes are possible; extents of 0 count "
                           "as 1",
                           to_string(shape), shale::name(type), format::file_bytes_max));
}

format::array_record make_record(std::string_view name, const array_spec& spec) {
  require_new_name(name);
  detail::require_enumerator(spec.kind, array_kind::chunked, "array_kind");
  require_storable(name, spec.shape, spec.dtype);
  format::array_record record;
  record.name = name;
  record.dtype = spec.dtype;
  record.shape = spec.shape;
  record.fill_value = element_of(spec.fill_value, spec.dtype);
  if (spec.kind == array_kind::chunked) record.layout = make_chunked(name, spec);
  else require_dense(name, spec, record.fill_value);
  return record;
}

namespace {

stage_kind stage_of(compressor packs) {
  detail::require_enumerator(packs, compressor::lz4, "compressor");
  switch (packs) {
    case compressor::zstd:
      return stage_kind::zstd;
    case compressor::lz4:
      break;
  }
  return stage_kind::lz4;
}

}  // namespace

std::vector<codec_stage> stages_of(const codec_spec& spec, dtype type) {
  if (spec.shuffle) detail::require_enumerator(*spec.shuffle, shuffle_mode::bit, "shuffle_mode");
  std::vector<codec_stage> stages;
  if (spec.bitround) stages.push_back({stage_kind::bitround, *spec.bitround});
  if (spec.delta) stages.push_back({stage_kind::delta, 0});
  // Shuffling alone makes nothing smaller. Without a compressor it is done only if the
  // caller asks for it.
  const shuffle_mode chosen = spec.shuffle.value_or(
      item_bytes(type) > 1 && spec.compression ? shuffle_mode::byte : shuffle_mode::none);
  if (chosen == shuffle_mode::byte) stages.push_back({stage_kind::byte_shuffle, 0});
  if (chosen == shuffle_mode::bit) stages.push_back({stage_kind::bit_shuffle, 0});
  if (spec.compression)
    stages.push_back({stage_of(spec.compression->compressor), spec.compression->level});
  return stages;
}

codec_spec codec_spec_of(std::span<const codec_stage> stages) {
  codec_spec spec{.shuffle = shuffle_mode::none, .compression = std::nullopt};
  for (const auto& stage : stages) {
    switch (stage.kind) {
      case stage_kind::bitround:
        spec.bitround = stage.parameter;
        break;
      case stage_kind::delta:
        spec.delta = true;
        break;
      case stage_kind::byte_shuffle:
        spec.shuffle = shuffle_mode::byte;
        break;
      case stage_kind::bit_shuffle:
        spec.shuffle = shuffle_mode::bit;
        break;
      case stage_kind::zstd:
        spec.compression = zstd(stage.parameter);
        break;
      case stage_kind::lz4:
        spec.compression = lz4(stage.parameter);
        break;
    }
  }
  return spec;
}

std::vector<std::byte> element_of(const scalar& value, dtype type) {
  if (!value.fits(type))
    throw error(errc::invalid_argument, fmt::format("{} cannot represent the fill value {}",
                                                    name(type), value.to_string()));
  std::vector<std::byte> element(item_bytes(type));
  visit(type, all_types{}, [&]<class T>(std::type_identity<T>) {
    const T converted = value.as<T>();
    std::memcpy(element.data(), &converted, sizeof converted);
  });
  return element;
}

scalar scalar_of(std::span<const std::byte> element, dtype type) {
  return visit(type, all_types{}, [&]<class T>(std::type_identity<T>) {
    T value;
    std::memcpy(&value, element.data(), sizeof value);
    return scalar(value);
  });
}

}  // namespace arrays
}  // namespace shale
