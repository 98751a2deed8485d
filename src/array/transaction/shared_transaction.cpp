#include "array/transaction/shared_transaction.hpp"

#include "array/specification/level_records.hpp"
#include "array/transaction/changes/running_write.hpp"
#include "array/transaction/changes/transaction_chunks.hpp"
#include "array/transaction/changes/transaction_end.hpp"
#include "array/transaction/changes/unit_copies.hpp"

namespace shale::arrays {

shared_transaction::~shared_transaction() { transaction_end(*this).abort(); }

// ---- arrays as changed so far -----------------------------------------------------------------

std::optional<shared_transaction::found_array> shared_transaction::find(
    std::string_view name) const {
  const auto state = locks.lock_state();
  require_active();
  auto record = inner->find(name);
  if (!record || is_level_record(*record)) return std::nullopt;
  found_array found{std::move(*record), nullptr, base.view()};
  const auto known = written.find(name);
  if (!known) return found;
  if (known->shared && known->shared->unchanged()) return found;
  found.written = known;
  if (found.record.is_dense()) {  // the catalog gets the shape at the end of an append
    found.record.shape = found.written->record.shape;
    found.record.dense() = found.written->record.dense();
  }
  found.base.reset();
  return found;
}

std::vector<std::string> shared_transaction::names(std::string_view prefix, std::string_view after,
                                                   std::size_t limit) const {
  const auto state = locks.lock_state();
  require_active();
  return array_names(*inner, prefix, after, limit);
}

std::vector<level_entry> shared_transaction::children(std::string_view level,
                                                      std::string_view after,
                                                      std::size_t limit) const {
  const auto state = locks.lock_state();
  require_active();
  return array_children(*inner, level, after, limit);
}

// ---- elements of arrays -----------------------------------------------------------------------

void shared_transaction::require_writable(const written_array& array) const {
  const auto state = locks.lock_state();
  require_active();
  array.require_there();
}

storage shared_transaction::bytes_of(written_array& array) {
  const running_write running(*this);
  unit_copies(*this, array).require_all();
  const auto state = locks.lock_state();
  require_active();
  array.require_there();
  if (!array.bytes) array.map_bytes(*inner, path());
  return array.bytes;
}

shared_transaction::dense_part shared_transaction::part_of(written_array& array,
                                                           const layout& view) {
  bool is_shared = false;
  std::uint64_t divided_at = 0;
  {
    const auto state = locks.lock_state();
    is_shared = array.shared && !array.bytes;
    if (is_shared) divided_at = array.shared->divided_at;
  }
  if (!is_shared) return {bytes_of(array)};
  const running_write running(*this);
  const auto units = touched_units(view, item_bytes(array.record.dtype),
                                   format::array_bytes(array.record), divided_at);
  if (units.first == units.end) return {storage::allocate(0)};
  unit_copies copies(*this, array);
  copies.require(units);
  return {copies.window(units), units.first};
}

std::shared_ptr<chunk_tiles> shared_transaction::tiles_of(const written_array& array) const {
  const auto state = locks.lock_state();
  require_active();
  array.require_there();
  return array.tiles;
}

std::shared_ptr<const chunk_tiles> shared_transaction::read_only_tiles_of(
    const std::shared_ptr<written_array>& array) {
  return std::make_shared<chunk_tiles>(
      label(array->name), array->record,
      std::make_shared<transaction_chunks>(shared_from_this(), array, false));
}

void shared_transaction::note_lost_bytes(const written_array& array) noexcept {
  if (!locks.are_of_this_process()) return;
  const auto state = locks.lock_own_state();
  if (inner && !array.removed) inner->refuse_commit();
}

}  // namespace shale::arrays
