#include "data/array_form.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "notation/codec_text.hpp"
#include "notation/shape_text.hpp"

namespace shale::tools {

namespace {

// Mantissa bits of a floating or complex type that bitround supports; 0 for every other type.
int mantissa_bits(dtype type) {
  switch (type) {
    case dtype::float16:
      return 10;
    case dtype::bfloat16:
      return 7;
    case dtype::float32:
    case dtype::complex64:
      return 23;
    case dtype::float64:
    case dtype::complex128:
      return 52;
    default:
      return 0;
  }
}

void keep_fill_value(chosen_form& form, const scalar& fill) {
  if (form.spec.kind == array_kind::dense) return;
  if (fill.fits(form.spec.dtype)) form.spec.fill_value = fill;
  else
    form.not_kept.push_back(fmt::format("fill value {}: {} cannot represent it", fill.to_string(),
                                        name(form.spec.dtype)));
}

void keep_chunks(chosen_form& form, const array_spec& model) {
  const dims& shape = form.spec.shape;
  dims chunk = *model.chunk_shape;
  if (chunk.size() != shape.size()) {
    form.not_kept.push_back(fmt::format("chunks of {}: the shape {} has another number of axes",
                                        to_string(chunk), to_string(shape)));
    return;
  }
  for (index_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] < model.shape[axis])
      chunk[axis] = std::min(chunk[axis], std::max<index_t>(1, shape[axis]));
  form.spec.chunk_shape = chunk;
}

void keep_codec(chosen_form& form, codec_spec codec) {
  const dtype type = form.spec.dtype;
  if (codec.delta && !is_integer(type)) {
    codec.delta = false;
    form.not_kept.push_back(
        fmt::format("codec stage delta: {} is not an integer type", name(type)));
  }
  const int bits = mantissa_bits(type);
  if (codec.bitround && (bits == 0 || *codec.bitround > bits)) {
    form.not_kept.push_back(fmt::format("codec stage bitround:{}: {} has {} mantissa bits",
                                        *codec.bitround, name(type), bits));
    codec.bitround.reset();
  }
  form.spec.codec = codec;
}

dims parse_chunk(const std::string& text, const dims& shape) {
  dims chunk = parse_shape(text);
  if (chunk.size() == shape.size()) return chunk;
  throw error(errc::invalid_argument, "--chunk needs one extent an axis",
              {fmt::format("got {} for shape {}", to_string(chunk), to_string(shape))});
}

}  // namespace

void form_options::add_to(CLI::App& command) {
  CLI::Option* chunks = command.add_flag("--chunked", chunked, "Store in compressed chunks");
  command.add_flag("--dense", dense, "Store as mappable bytes [if no other form is kept]")
      ->excludes(chunks);
  command.add_option("--chunk", chunk, "Extents of a chunk, as in 128,2048 [about 1 MiB]")
      ->type_name("N,M,..");
  command
      .add_option("--codec", codec,
                  "Stages for chunks: bitround:N, delta, shuffle or bitshuffle, zstd:LEVEL "
                  "or lz4:LEVEL; raw for none; auto tries some [shuffle,zstd:1]")
      ->type_name("STAGES");
}

array_spec spec_of(const array& stored) {
  array_spec spec{.dtype = stored.dtype(),
                  .shape = stored.shape(),
                  .kind = stored.kind(),
                  .fill_value = stored.fill_value()};
  if (spec.kind == array_kind::chunked) {
    spec.chunk_shape = stored.chunk_shape();
    spec.codec = stored.codec();
  }
  return spec;
}

dims axes_of_slice(index_t rank, const std::vector<index_entry>& index) {
  using entry = index_entry_kind;
  index_t indexed_axes = 0;
  for (const index_entry& item : index)
    indexed_axes += item.kind() == entry::position || item.kind() == entry::range ? 1 : 0;
  dims axes;
  index_t axis = 0;
  const auto keep = [&](index_t count) {
    for (const index_t end = axis + count; axis < end; ++axis) axes.push_back(axis);
  };
  for (const index_entry& item : index) {
    if (item.kind() == entry::position) ++axis;
    if (item.kind() == entry::range) keep(1);
    if (item.kind() == entry::new_axis) axes.push_back(-1);
    if (item.kind() == entry::ellipsis) keep(rank - indexed_axes);
  }
  keep(rank - axis);
  return axes;
}

array_spec sliced(const array_spec& whole, const dims& axes) {
  array_spec spec = whole;
  dims chunk;
  spec.shape = {};
  for (const index_t axis : axes) {
    spec.shape.push_back(axis < 0 ? 1 : whole.shape[axis]);
    if (whole.chunk_shape) chunk.push_back(axis < 0 ? 1 : (*whole.chunk_shape)[axis]);
  }
  if (whole.chunk_shape) spec.chunk_shape = chunk;
  return spec;
}

chosen_form form_for(dtype type, const dims& shape, const std::optional<array_spec>& model,
                     const form_options& options) {
  if (options.dense && options.wants_chunks())
    throw error(errc::invalid_argument, "--dense arrays have neither --chunk nor --codec");
  chosen_form form{.spec = {.dtype = type, .shape = shape}, .not_kept = {}};
  array_spec& spec = form.spec;
  const bool follows_chunks = model && model->kind == array_kind::chunked && !options.dense;
  if (follows_chunks || options.wants_chunks()) spec.kind = array_kind::chunked;
  if (model) keep_fill_value(form, model->fill_value);
  if (spec.kind == array_kind::dense) return form;
  if (!options.chunk.empty()) spec.chunk_shape = parse_chunk(options.chunk, shape);
  else if (follows_chunks) keep_chunks(form, *model);
  if (options.chooses_codec()) return form;
  if (!options.codec.empty()) spec.codec = parse_codec(options.codec);
  else if (follows_chunks) keep_codec(form, model->codec);
  return form;
}

bool can_take(dtype present, dtype type) {
  // The user chose the dtype of the array that exists, so values may be rounded to it.
  if (kind(present) == dtype_kind::complex) return true;
  if (kind(present) == dtype_kind::floating && kind(type) != dtype_kind::complex) return true;
  try {
    return promote(present, type) == present;
  } catch (const error&) {
    return false;  // int64 and uint64 have no common type
  }
}

}  // namespace shale::tools
