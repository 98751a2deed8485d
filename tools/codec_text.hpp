// Codec pipelines as text: "shuffle,zstd:1".
#pragma once

#include <string>
#include <string_view>

#include "shale/array.hpp"

namespace shale::tools {

/// Stages separated by commas, in any order: bitround:N (mantissa bits to keep), delta, shuffle,
/// bitshuffle, zstd or zstd:LEVEL; "raw" alone for none. What is not named is off.
/// Throws   located_error: unknown or repeated stages, numbers out of range
codec_spec parse_codec(std::string_view text);

/// The stages in the order in which they run; "raw" for none.
std::string format_codec(const codec_spec& codec, dtype type);

}  // namespace shale::tools
