// Changes the attributes of an array, and checks the limits for writers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/catalog/array_record.hpp"

namespace shale::format {

/// A writer stores at most this many bytes of one array's attributes: their keys and values, and 48
/// bytes for each of them. So the descriptor always fits into the catalog, and readers can verify
/// it.
inline constexpr std::uint64_t attributes_bytes_max = (64u << 20) - (64u << 10);
inline constexpr std::size_t attributes_max = 1u << 19;

/// The stored bytes of the attribute with that key, or null.
/// Lifetime valid until the record's attributes change
const std::string* find_attribute(const array_record& record, std::string_view key) noexcept;

/// Sets or replaces an attribute, keeping the order.
/// Throws   invalid_argument: it is longer than any array's attributes may be
void set_attribute(array_record& record, std::string_view key, std::string_view value);

/// Returns  whether there was one
bool remove_attribute(array_record& record, std::string_view key);

/// Describes the limit for writers that the attributes exceed; nothing if they keep all limits.
std::optional<std::string> problem_of_attributes(const array_record& record);

}  // namespace shale::format
