#include "format/space/remembered_space.hpp"

#include <mutex>

namespace shale::format {

void remembered_space::keep(const page_ref& root, unused_section&& section) noexcept {
  const std::lock_guard lock(mutex_);
  last_.reset();
  if (section.range_count() <= ranges_max) last_.emplace(remembered{root, std::move(section)});
}

std::optional<unused_section> remembered_space::take(const page_ref& root) noexcept {
  const std::lock_guard lock(mutex_);
  std::optional<remembered> taken = std::exchange(last_, std::nullopt);
  if (!taken || taken->root != root) return std::nullopt;
  return std::move(taken->section);
}

}  // namespace shale::format
