#include "array/transaction/changes/array_changes.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "array/specification/new_names.hpp"
#include "array/transaction/changes/catalog_lookup.hpp"
#include "array/transaction/changes/transaction_chunks.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

// ---- arrays that are added --------------------------------------------------------------------

// The chunks of an array, which messages call `name`, as tiles; null for a dense array.
std::shared_ptr<chunk_tiles> array_changes::writable_tiles_of(
    const std::shared_ptr<written_array>& array, std::string_view name) {
  if (array->record.is_dense()) return nullptr;
  return std::make_shared<chunk_tiles>(
      owner_.label(name), array->record,
      std::make_shared<transaction_chunks>(owner_.shared_from_this(), array, true));
}

void array_changes::enlist(const std::shared_ptr<written_array>& array) {
  std::shared_ptr<chunk_tiles> tiles = writable_tiles_of(array, array->name);
  owner_.written.put(array);
  array->tiles = std::move(tiles);
}

std::shared_ptr<written_array> array_changes::create(format::array_record record) {
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  if (owner_.inner->find(record.name))
    throw error(errc::already_exists, fmt::format("'{}' exists", record.name),
                {fmt::format("in {}", owner_.path()), "remove it first, or update it"});
  require_free_path(owner_, record.name, {});
  return add(std::move(record));
}

// The caller holds both locks, and has checked the name.
std::shared_ptr<written_array> array_changes::add(format::array_record record) {
  const auto array = std::make_shared<written_array>(std::move(record));
  auto& made = array->record;
  try {
    if (made.is_dense()) {
      const std::uint64_t bytes = format::array_bytes(made);
      if (bytes > 0) made.dense().extents.push_back(owner_.inner->allocate(bytes));
    }
    enlist(array);
    owner_.inner->put(made);
  } catch (...) {
    array->tiles.reset();  // the tiles and the transaction own each other
    owner_.written.erase(array->name);
    if (made.is_dense()) give_back(made.dense());
    throw;
  }
  return array;
}

std::shared_ptr<written_array> array_changes::create_unnamed(format::array_record record) {
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  // The free name occurs nowhere in the label that messages are to show. So the caller can replace
  // it there by the wanted name.
  const std::string shown = owner_.label(record.name);
  std::uint64_t number = 1;
  do record.name = fmt::format(".new-{}", number++);
  while (shown.find(record.name) != shown.npos || !owner_.inner->list(record.name, {}, 1).empty());
  return add(std::move(record));
}

std::shared_ptr<written_array> array_changes::update(std::string_view name) {
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  if (auto known = owner_.written.find(name)) return known;
  auto array = array_of_base(existing_record(owner_, name));
  enlist(array);
  return array;
}

// Gives back the space of an array that could not be made. Space that cannot be given back now is
// given back when the transaction ends.
void array_changes::give_back(const format::dense_layout& unused) noexcept {
  for (const auto& extent : unused.extents) {
    try {
      owner_.inner->release(extent);
    } catch (...) {
      // The extent belongs to an array of the catalog. If it is this array, the transaction can
      // only be aborted.
    }
  }
}

// ---- arrays that are removed ------------------------------------------------------------------

// Gives back the units of a removed array that were copied, and that no record names.
void array_changes::give_back_copies(const written_array& array) noexcept {
  if (!array.shared) return;
  try {
    for (const format::extent& piece : array.shared->units.new_extents())
      owner_.inner->release_within(piece);
  } catch (...) {
    // Commit gives back what no record names.
  }
}

void array_changes::remove(std::string_view name) {
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  static_cast<void>(existing_record(owner_, name));
  erase(name);
}

void array_changes::discard(const written_array& made) noexcept {
  try {
    const auto changes = owner_.locks.lock_changes();
    const auto state = owner_.locks.lock_state();
    if (owner_.operations.chunks().closed() || made.removed) return;
    // Another object has the elements of an array that was resized meanwhile.
    if (!made.resized) return erase(made.name);
  } catch (...) {
    // The array stays.
  }
  owner_.refuse_commit();
}

// The caller holds both locks.
void array_changes::erase(std::string_view name) {
  owner_.written.require_shape_at_rest(name);
  // The catalog comes first: it alone can fail. If it fails half-way, the transaction refuses every
  // other use of its space, and the mapping stays. Otherwise the array's space is free from here
  // on, but nothing else gets it before the mapping is detached, because that needs the state lock.
  if (!owner_.inner->erase(name)) throw_no_array(owner_, name);
  if (const auto known = owner_.written.find(name)) {
    known->removed = true;
    known->detach_from_file();
    known->tiles.reset();  // the tiles and the transaction own each other
    give_back_copies(*known);
    owner_.written.erase(name);
  }
}

// ---- names ------------------------------------------------------------------------------------

void array_changes::rename(std::string_view from, std::string_view to) {
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_active();
  require_new_name(to);
  static_cast<void>(existing_record(owner_, from));
  owner_.written.require_shape_at_rest(from);
  if (!owner_.inner->find(to)) require_free_path(owner_, to, from);
  move(from, to);
}

// The caller holds both locks.
void array_changes::move(std::string_view from, std::string_view to) {
  std::string key(to), name(to);  // nothing that can fail comes after the catalog
  owner_.inner->rename(from, to);
  owner_.written.rename(from, std::move(key), std::move(name));
}

void array_changes::take_name(const std::shared_ptr<written_array>& made, std::string_view name) {
  const auto changes = owner_.locks.lock_changes();
  const auto state = owner_.locks.lock_state();
  owner_.require_chunks_active();
  made->require_there();
  owner_.written.require_shape_at_rest(made->name);
  auto tiles = writable_tiles_of(made, name);
  std::string known_as(name);
  const bool replaces = owner_.inner->find(name).has_value();
  if (!replaces) require_free_path(owner_, name, {});
  if (replaces) erase(name);
  try {
    move(std::string(made->name), name);
  } catch (...) {
    if (replaces) owner_.inner->refuse_commit();  // the old array cannot be restored
    throw;
  }
  made->tiles = std::move(tiles);
  made->record.name = std::move(known_as);
}

}  // namespace shale::arrays
