// What the elements of a new array are, as `--dtype` says it: a dtype, or a logical dtype with the
// integers that hold it.
#pragma once

#include <optional>
#include <string_view>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/index.hpp"
#include "shale/logical_dtype.hpp"

namespace shale::tools {

struct element_type {
  dtype storage = dtype::float32;
  std::optional<logical_dtype> logical = std::nullopt;  ///< what the integers stand for
  index_t characters = 0;                               ///< of each text

  /// The shape of the integers: texts have an axis of characters at the end.
  /// Throws   invalid_argument: more axes than an array can have
  dims storage_shape(const dims& shape) const;
};

/// Reads the name of a dtype ("float32", "f4"), of a time ("datetime64[s]", "M8[25s]",
/// "timedelta64[ms]", "m8"), or of texts of so many characters ("S10" bytes, "U5" Unicode). NumPy's
/// mark of the order of bytes ("<M8[s]", "|S10") may stand before it.
/// Throws   invalid_argument: no such type, with a list of them; texts without a length
element_type parse_element_type(std::string_view text);

}  // namespace shale::tools
