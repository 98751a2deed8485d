#include "array/specification/close_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace shale::arrays {

namespace {

// Longer names are not compared: nobody types them by hand, and the time to compare grows with the
// square of the length.
constexpr std::size_t bytes_compared_max = 64;

// The least number of insertions, deletions and substitutions that turn `a` into `b` (Levenshtein's
// distance). `row` holds the distances of the first i + 1 bytes of `a` from all beginnings of `b`.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> close_names(std::string_view wanted, std::span<const std::string> names) {
  const std::size_t edits_max = std::max<std::size_t>(1, wanted.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const auto& name : names.first(std::min(names.size(), names_compared_max))) {
    const std::size_t longer = std::max(name.size(), wanted.size());
    if (longer > bytes_compared_max) continue;
    if (longer - std::min(name.size(), wanted.size()) > edits_max) continue;
    const std::size_t edits = edits_between(wanted, name);
    if (edits <= edits_max) found.emplace_back(edits, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> closest;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, found.size()); ++i)
    closest.push_back(std::move(found[i].second));
  return closest;
}

void suggest_names(error& failure, std::string_view wanted, std::span<const std::string> names) {
  const auto close = close_names(wanted, names);
  if (!close.empty())
    failure.add_detail(fmt::format("did you mean '{}'?", fmt::join(close, "', '")));
}

}  // namespace shale::arrays
