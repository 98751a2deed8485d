// Translates between a caller's specification of an array and its record in the catalog: dtypes,
// fill values, chunk shapes, codecs.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "format/catalog/array_record.hpp"
#include "format/codec/codec.hpp"
#include "shale/array_spec.hpp"

namespace shale::arrays {

/// The record of a new array. It has no extent, no chunk and no attribute yet.
/// Throws   invalid_argument naming the part that is wrong: name, shape, fill value, chunk shape,
///          codec
format::array_record make_record(std::string_view name, const array_spec& spec);

/// Throws   invalid_argument if the shape is invalid, or if its elements need more bytes than any
///          file can have
void require_storable(std::string_view name, const dims& shape, dtype type);

/// The stages of a codec_spec. This chooses values for members that the specification leaves open.
std::vector<format::codec_stage> stages_of(const codec_spec& spec, dtype type);

/// The specification that gives these stages. It sets every member.
codec_spec codec_spec_of(std::span<const format::codec_stage> stages);

/// `value` as one stored element.
/// Throws   invalid_argument if the dtype cannot hold it
std::vector<std::byte> element_of(const scalar& value, dtype type);

/// The element as a scalar.
scalar scalar_of(std::span<const std::byte> element, dtype type);

}  // namespace shale::arrays
