#include "array/transaction/changes/shared_transaction.hpp"

#include <fmt/format.h>

#include "array/elements/dense_bytes.hpp"
#include "array/specification/level_records.hpp"
#include "array/transaction/changes/transaction_chunks.hpp"
#include "array/transaction/changes/transaction_end.hpp"
#include "array/transaction/changes/unit_copies.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

shared_transaction::shared_transaction(std::shared_ptr<reader_file> readers,
                                       std::shared_ptr<commit_pipeline> pipeline,
                                       format::transaction inner, format::generation_view base)
    : readers_(std::move(readers)),
      pipeline_(std::move(pipeline)),
      generation_(inner.generation()),
      locks_(readers_->path()),
      inner_(std::move(inner)),
      base_(std::move(base)) {}

shared_transaction::~shared_transaction() { abort(); }

void shared_transaction::abort() noexcept { transaction_end(*this).abort(); }

shared_transaction::running_write::~running_write() {
  scope_.reset();
  visit_.reset();
  if (of_.operations_.abort_asked() && !parallel::call_scope::inside(&of_)) of_.abort();
}

std::string shared_transaction::label(std::string_view name) const {
  return fmt::format("{} in {}", detail::in_quotes(name), path());
}

void shared_transaction::require_open(const operation_gate& gate) const {
  if (gate.closed())
    throw error(errc::invalid_argument, "the transaction has ended",
                {fmt::format("file {}, generation {}", path(), generation_),
                 "begin another one to change more"});
}

void shared_transaction::require_writable(const written_array& array) const {
  const auto state = locks_.state();
  require_active();
  array.require_there();
}

// Another thread may have aborted, and ended, the transaction while this one waited for writes.
void shared_transaction::require_not_aborted() const {
  if (operations_.abort_asked())
    throw error(errc::invalid_argument, "the transaction was aborted during a write",
                {fmt::format("file {}, generation {}", path(), generation_)});
}

void shared_transaction::refuse_commit() noexcept {
  if (!locks_.are_of_this_process()) return;
  const auto state = locks_.own_state();
  if (inner_) inner_->refuse_commit();
}

void shared_transaction::note_lost_bytes(const written_array& array) noexcept {
  if (!locks_.are_of_this_process()) return;
  const auto state = locks_.own_state();
  if (inner_ && !array.removed) inner_->refuse_commit();
}

// ---- arrays as changed so far -----------------------------------------------------------------

std::optional<shared_transaction::found_array> shared_transaction::find(
    std::string_view name) const {
  const auto state = locks_.state();
  require_active();
  auto record = inner_->find(name);
  if (!record || is_level_record(*record)) return std::nullopt;
  found_array found{std::move(*record), nullptr, base_.view()};
  const auto known = written_.find(name);
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
  const auto state = locks_.state();
  require_active();
  return array_names(*inner_, prefix, after, limit);
}

std::vector<level_entry> shared_transaction::children(std::string_view level,
                                                      std::string_view after,
                                                      std::size_t limit) const {
  const auto state = locks_.state();
  require_active();
  return array_children(*inner_, level, after, limit);
}

// ---- elements of arrays -----------------------------------------------------------------------

storage shared_transaction::bytes_of(written_array& array) {
  const auto running = begin_write();
  unit_copies(*this, array).require_all();
  const auto state = locks_.state();
  require_active();
  array.require_there();
  if (!array.bytes) array.map_bytes(*inner_, path());
  return array.bytes;
}

shared_transaction::dense_part shared_transaction::part_of(written_array& array,
                                                           const layout& view) {
  bool is_shared = false;
  {
    const auto state = locks_.state();
    is_shared = array.shared && !array.bytes;
  }
  if (!is_shared) return {bytes_of(array)};
  const auto running = begin_write();
  const auto units =
      touched_units(view, item_bytes(array.record.dtype), format::array_bytes(array.record));
  if (units.first == units.end) return {storage::allocate(0)};
  unit_copies copies(*this, array);
  copies.require(units);
  return {copies.window(units), units.first};
}

std::shared_ptr<chunk_tiles> shared_transaction::tiles_of(const written_array& array) const {
  const auto state = locks_.state();
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

}  // namespace shale::arrays
