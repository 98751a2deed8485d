#include "doctor/verdicts/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "terminal/units.hpp"

namespace shale::tools {

std::string_view name(verdict found) noexcept {
  switch (found) {
    case verdict::ok:
      return "ok";
    case verdict::unknown:
      return "unknown";
    case verdict::note:
      return "note";
    default:
      return "problem";
  }
}

std::string share_of(std::uint64_t part_bytes, std::uint64_t whole_bytes) {
  const std::string whole = format_bytes(whole_bytes);
  if (part_bytes >= whole_bytes) return fmt::format("all of {}", whole);
  return fmt::format("{} of {}", part_bytes == 0 ? "none" : format_bytes(part_bytes), whole);
}

std::uint64_t remainder_of(std::uint64_t limit, std::uint64_t used) noexcept {
  return limit - std::min(limit, used);
}

}  // namespace shale::tools
