// Which names somebody may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shale::arrays {

/// The (up to) three of `names` that are fewest edits away from `wanted`, closest first; none that
/// differ in more than a third of the characters.
/// Cost     O(names x length^2)
std::vector<std::string> close_names(std::string_view wanted, std::span<const std::string> names);

}  // namespace shale::arrays
