// Numbers and shapes as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "shale/dims.hpp"
#include "shale/scalar.hpp"

namespace shale::tools {

/// Integers are exact, infinities are text, NaN is null, and a complex number is [real, imaginary].
nlohmann::json to_json(const scalar& value);

/// A list of integers.
nlohmann::json to_json(const dims& values);

}  // namespace shale::tools
