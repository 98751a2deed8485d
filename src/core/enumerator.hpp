// Checks enumeration values that callers pass: a cast, or uninitialised memory, can make invalid
// ones.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "shale/error.hpp"

namespace shale::detail {

/// Refuses values greater than `last`, for enumerations that count from 0.
/// Throws   invalid_argument naming `enumeration`
template <class Enum>
void require_enumerator(Enum value, Enum last, std::string_view enumeration) {
  const auto number = static_cast<std::underlying_type_t<Enum>>(value);
  if (number <= static_cast<std::underlying_type_t<Enum>>(last)) [[likely]]
    return;
  throw error(errc::invalid_argument, "invalid value for " + std::string(enumeration),
              {"got " + std::to_string(number) + ", wanted 0 to " +
               std::to_string(static_cast<int>(last))});
}

}  // namespace shale::detail
