#include "array/transaction/changes/attribute_changes.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "array/specification/close_names.hpp"
#include "array/specification/level_records.hpp"
#include "array/specification/new_names.hpp"
#include "array/transaction/changes/catalog_lookup.hpp"
#include "core/printable.hpp"
#include "format/catalog/attributes.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

void attribute_changes::set(std::string_view array, std::string_view key, std::string_view value) {
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  format::array_record record = existing_record(owner_, array);
  format::set_attribute(record, key, value);
  owner_.inner->put(record);
}

void attribute_changes::remove(std::string_view array, std::string_view key) {
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  format::array_record record = existing_record(owner_, array);
  erase(record, key);
  owner_.inner->put(record);
}

// Throws   not_found, with keys that are similar
void attribute_changes::erase(format::array_record& record, std::string_view key) const {
  if (format::remove_attribute(record, key)) return;
  error failure(errc::not_found, "no attribute " + detail::in_quotes(key),
                {fmt::format("in {}", owner_.path())});
  std::vector<std::string> keys;
  for (const auto& attribute : record.attributes) keys.push_back(attribute.first);
  suggest_names(failure, key, keys);
  throw failure;
}

// ---- levels -----------------------------------------------------------------------------------

// The caller holds the state lock.
// Throws   already_exists: an array of an older file has the name
std::optional<format::array_record> attribute_changes::level_record(const std::string& name) const {
  auto record = owner_.inner->find(name);
  if (record && !is_level_record(*record))
    throw error(errc::already_exists, "a level cannot have attributes",
                {fmt::format("an array has the name {}, which is reserved for them: rename it",
                             detail::in_quotes(name))});
  return record;
}

void attribute_changes::set_of_level(std::string_view level, std::string_view key,
                                     std::string_view value) {
  std::string name = level_record_name(level);
  require_new_path(name);
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  auto record = level_record(name);
  if (!record) {
    require_free_path(owner_, name, {});
    record = make_level_record(std::move(name));
  }
  format::set_attribute(*record, key, value);
  owner_.inner->put(*record);
}

void attribute_changes::remove_of_level(std::string_view level, std::string_view key) {
  std::string name = level_record_name(level);
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  auto record = level_record(name);
  if (!record) record = make_level_record(name);
  erase(*record, key);
  if (record->attributes.empty()) owner_.inner->erase(name);
  else owner_.inner->put(*record);
}

std::optional<format::array_record> attribute_changes::find_level(std::string_view level) const {
  const std::string name = level_record_name(level);
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  return level_record(name);
}

}  // namespace shale::arrays
