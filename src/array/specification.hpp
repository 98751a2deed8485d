// From what a caller asks for to what the catalog holds, and back: dtypes, fill values, chunk
// shapes, codecs.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "format/codec.hpp"
#include "format/descriptor.hpp"
#include "shale/array.hpp"

namespace shale::arrays {

/// The record of a new array: no extent, no chunk, no attribute yet.
/// Throws   invalid_argument naming what does not fit: name, shape, fill value, chunk shape, codec
format::array_record make_record(std::string_view name, const array_spec& spec);

/// The stages behind a codec_spec; what it leaves open is chosen here.
std::vector<format::codec_stage> stages_of(const codec_spec& spec, dtype type);

/// What the stages amount to, with nothing left open.
codec_spec codec_spec_of(std::span<const format::codec_stage> stages);

/// `value` as one stored element.
/// Throws   invalid_argument if the dtype cannot hold it
std::vector<std::byte> element_of(const scalar& value, dtype type);

/// The element as a scalar.
scalar scalar_of(std::span<const std::byte> element, dtype type);

}  // namespace shale::arrays
