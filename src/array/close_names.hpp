// Which names somebody may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shale/error.hpp"

namespace shale::arrays {

/// Names that are compared with one that was not found; more would make the mistake expensive.
inline constexpr std::size_t names_compared_max = 4096;

/// The (up to) three of `names` that are fewest edits away from `wanted`, closest first; none that
/// differ in more than a third of the characters. Names of more than 256 bytes are not compared, nor
/// more than `names_compared_max`.
/// Cost     O(names x length^2)
std::vector<std::string> close_names(std::string_view wanted, std::span<const std::string> names);

/// Adds "did you mean …?" to `failure` if some of `names` are close to `wanted`.
void suggest_names(error& failure, std::string_view wanted, std::span<const std::string> names);

}  // namespace shale::arrays
