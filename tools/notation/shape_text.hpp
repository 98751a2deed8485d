// Shapes and dtypes as options and addresses write them.
#pragma once

#include <string_view>

#include "notation/text_cursor.hpp"
#include "shale/dims.hpp"
#include "shale/dtype.hpp"

namespace shale::tools {

/// "(344, 403)", "344,403", "[344, 403]" or "344x403"; "()" has rank 0.
/// Throws   located_error: not a list of integers >= 0, or more than rank_max of them
dims parse_shape(std::string_view text);

/// Reads extents up to `close` and `close` itself. An empty `close` stands for the end of the text.
/// Throws   located_error, as parse_shape
dims take_shape(text_cursor& text, std::string_view close);

/// Throws   invalid_argument with a list of all dtypes
dtype parse_dtype_option(std::string_view text);

}  // namespace shale::tools
