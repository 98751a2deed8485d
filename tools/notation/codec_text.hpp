// Codec pipelines as text: "shuffle,zstd:1".
#pragma once

#include <string>
#include <string_view>

#include "shale/array_spec.hpp"

namespace shale::tools {

/// Parses stages separated by commas, in any order: bitround:N (mantissa bits to keep), delta,
/// shuffle, bitshuffle, zstd or zstd:LEVEL, lz4 or lz4:LEVEL. "raw" alone means no stage.
/// Throws   located_error: unknown or repeated stages, numbers out of range
codec_spec parse_codec(std::string_view text);

/// The stages in the order in which they run; "raw" if there is none.
std::string format_codec(const codec_spec& codec, dtype type);

}  // namespace shale::tools
