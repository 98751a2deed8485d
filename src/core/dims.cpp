#include "shale/dims.hpp"

#include "shale/error.hpp"

namespace shale {

void detail::throw_rank_too_large(index_t rank) {
  throw error(
      errc::invalid_argument, "too many axes",
      {"got a list of " + std::to_string(rank) + ", wanted at most " + std::to_string(rank_max)});
}

std::string to_string(const dims& values) {
  std::string text = "(";
  for (index_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(values[i]);
  }
  if (values.size() == 1) text += ',';
  return text + ')';
}

}  // namespace shale
