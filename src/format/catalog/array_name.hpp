// Checks the names of arrays in the catalog. docs/container-format.md, "Catalog and descriptors",
// is this file in prose.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shale::format {

/// Longest name of an array, in bytes.
inline constexpr std::size_t name_bytes_max = 1024;

/// Describes the first problem of the name; nothing if it is 1 to 1024 bytes of UTF-8 without
/// control characters.
std::optional<std::string> problem_of_name(std::string_view name);

/// Throws   invalid_argument with the problem, unless the name is valid
void require_valid_name(std::string_view name);

}  // namespace shale::format
