#include "array/transaction/state/written_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/printable.hpp"
#include "shale/error.hpp"
#include "storage/mapped/mapped_extents.hpp"

namespace shale::arrays {

std::shared_ptr<written_array> written_arrays::find(std::string_view name) const noexcept {
  const auto known = arrays_.find(name);
  return known == arrays_.end() ? nullptr : known->second;
}

void written_arrays::put(const std::shared_ptr<written_array>& array) {
  arrays_[array->name] = array;
}

void written_arrays::replace(std::string_view name,
                             const std::shared_ptr<written_array>& array) noexcept {
  arrays_.find(name)->second = array;
}

void written_arrays::rename(std::string_view from, std::string key, std::string name) noexcept {
  const auto known = arrays_.find(from);
  if (known == arrays_.end()) return;
  auto moved = arrays_.extract(known);
  moved.key() = std::move(key);
  moved.mapped()->name = std::move(name);
  arrays_.insert(std::move(moved));
}

void written_arrays::erase(std::string_view name) noexcept {
  const auto known = arrays_.find(name);
  if (known != arrays_.end()) arrays_.erase(known);
}

// The tiles and the transaction own each other.
void written_arrays::clear() noexcept {
  for (const auto& [name, array] : arrays_) array->tiles.reset();
  arrays_.clear();
}

void written_arrays::require_shape_at_rest(std::string_view name) const {
  if (changing_shape_.contains(name))
    throw error(errc::busy, fmt::format("{} is being resized", detail::in_quotes(name)),
                {"another call appends to it or changes its shape: wait for its end"});
}

void written_arrays::check_mappings() const {
  for (const auto& [name, array] : arrays_)
    if (array->bytes) array->bytes.check();
}

void written_arrays::make_read_only() {
  for (const auto& [name, array] : arrays_)
    if (array->bytes && !array->bytes.empty()) detail::make_read_only(array->bytes);
}

bool written_arrays::any_held_by_others() const noexcept {
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [](const auto& entry) { return entry.second->is_held_by_others(); });
}

void written_arrays::detach_mappings() noexcept {
  for (const auto& [name, array] : arrays_) array->detach_from_file();
}

}  // namespace shale::arrays
