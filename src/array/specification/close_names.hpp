// Finds names that are close to one that was not found.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shale/error.hpp"

namespace shale::arrays {

/// The most names that are compared with one that was not found. More comparisons would make a
/// mistyped name expensive.
inline constexpr std::size_t names_compared_max = 4096;

/// At most three of `names`: those with the fewest edits from `wanted`, closest first. A name that
/// differs in more than a third of the characters is not close. Names of more than 64 bytes, and
/// names after the first `names_compared_max`, are not compared.
/// Cost     O(names x length^2)
std::vector<std::string> close_names(std::string_view wanted, std::span<const std::string> names);

/// Adds "did you mean …?" to `failure` if some of `names` are close to `wanted`.
void suggest_names(error& failure, std::string_view wanted, std::span<const std::string> names);

}  // namespace shale::arrays
