#include "array/transaction/shared_transaction.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "array/elements/dense_bytes.hpp"
#include "array/specification/close_names.hpp"
#include "array/specification/new_names.hpp"
#include "array/transaction/transaction_chunks.hpp"
#include "array/transaction/unit_copies.hpp"
#include "core/printable.hpp"
#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "format/catalog/attributes.hpp"
#include "shale/error.hpp"
#include "storage/mapped/mapped_extents.hpp"

namespace shale::arrays {

shared_transaction::shared_transaction(std::shared_ptr<reader_file> readers,
                                       format::transaction inner, format::generation_view base)
    : readers_(std::move(readers)),
      generation_(inner.generation()),
      inner_(std::move(inner)),
      base_(std::move(base)) {}

shared_transaction::~shared_transaction() { abort(); }

std::string shared_transaction::label(std::string_view name) const {
  return fmt::format("{} in {}", detail::in_quotes(name), path());
}

void shared_transaction::require_active(const operation_gate& gate) const {
  if (gate.closed())
    throw error(errc::invalid_argument, "the transaction has ended",
                {fmt::format("file {}, generation {}", path(), generation_),
                 "begin another one to change more"});
}

// In a forked child nobody waits for these locks: another thread of the parent may have held them
// at the fork.
std::unique_lock<std::mutex> shared_transaction::lock(std::mutex& mutex) const {
  if (!is_of_this_process())
    throw error(errc::invalid_argument, "the transaction is another process's",
                {"this one was forked from it: begin one of its own on file " + path()});
  return std::unique_lock(mutex);
}

// The caller holds `state_lock_`, which guards `removed`.
void shared_transaction::require_chunks(const written_array& array) const {
  require_active(chunks_);
  array.require_there();
}

// The caller holds `state_lock_`.
void shared_transaction::throw_no_array(std::string_view name) const {
  error failure(errc::not_found, "no array " + detail::in_quotes(name),
                {fmt::format("in {}", path())});
  suggest_names(failure, name, inner_->list({}, {}, names_compared_max));
  throw failure;
}

void shared_transaction::require_writable(const written_array& array) const {
  const auto state = lock(state_lock_);
  require_active();
  array.require_there();
}

storage shared_transaction::bytes_of(written_array& array) {
  const auto running = begin_write();
  unit_copies(*this, array).require_all();
  const auto state = lock(state_lock_);
  require_active();
  array.require_there();
  if (!array.bytes) array.map_bytes(*inner_, path());
  return array.bytes;
}

shared_transaction::dense_part shared_transaction::part_of(written_array& array,
                                                           const layout& view) {
  bool is_shared = false;
  {
    const auto state = lock(state_lock_);
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
  const auto state = lock(state_lock_);
  require_active();
  array.require_there();
  return array.tiles;
}

// ---- arrays -----------------------------------------------------------------------------------

// Enters an array that is written from now on, or throws and changes nothing. The caller holds
// `state_lock_`.
void shared_transaction::enlist(const std::shared_ptr<written_array>& array) {
  std::shared_ptr<chunk_tiles> tiles;
  if (!array->record.is_dense())
    tiles = std::make_shared<chunk_tiles>(
        label(array->name), array->record,
        std::make_shared<transaction_chunks>(shared_from_this(), array, true));
  written_[array->name] = array;
  array->tiles = std::move(tiles);
}

std::shared_ptr<written_array> shared_transaction::create(format::array_record record) {
  const auto changes = lock(changes_lock_);
  const auto state = lock(state_lock_);
  require_active();
  if (inner_->find(record.name))
    throw error(errc::already_exists, fmt::format("'{}' exists", record.name),
                {fmt::format("in {}", path()), "remove it first, or update it"});
  const auto array = std::make_shared<written_array>(std::move(record));
  auto& made = array->record;
  // The catalog comes last: nothing that can fail comes after it.
  try {
    if (made.is_dense()) {
      const std::uint64_t bytes = format::array_bytes(made);
      if (bytes > 0) made.dense().extents.push_back(inner_->allocate(bytes));
    }
    enlist(array);
    inner_->put(made);
  } catch (...) {
    array->tiles.reset();  // the tiles and the transaction own each other
    written_.erase(array->name);
    if (made.is_dense()) give_back(made.dense());
    throw;
  }
  return array;
}

// An array as the base generation has it.
std::shared_ptr<written_array> shared_transaction::updated(format::array_record record) {
  auto array = std::make_shared<written_array>(std::move(record));
  if (array->record.is_dense() && !array->record.dense().extents.empty())
    array->shared.emplace().can_be_cut = can_be_cut(array->record.dense());
  return array;
}

std::shared_ptr<written_array> shared_transaction::update(std::string_view name) {
  const auto changes = lock(changes_lock_);
  const auto state = lock(state_lock_);
  require_active();
  if (const auto known = written_.find(name); known != written_.end()) return known->second;
  auto record = inner_->find(name);
  if (!record) throw_no_array(name);
  auto array = updated(std::move(*record));
  enlist(array);
  return array;
}

std::optional<shared_transaction::found_array> shared_transaction::find(
    std::string_view name) const {
  const auto state = lock(state_lock_);
  require_active();
  auto record = inner_->find(name);
  if (!record) return std::nullopt;
  found_array found{std::move(*record), nullptr, base_};
  const auto known = written_.find(name);
  if (known == written_.end()) return found;
  if (known->second->shared && known->second->shared->unchanged()) return found;
  found.written = known->second;
  found.base.reset();
  return found;
}

std::vector<std::string> shared_transaction::names(std::string_view prefix, std::string_view after,
                                                   std::size_t limit) const {
  const auto state = lock(state_lock_);
  require_active();
  return inner_->list(prefix, after, limit);
}

// Gives back the space of an array that could not be made. Space that cannot be given back now is
// given back when the transaction ends.
void shared_transaction::give_back(const format::dense_layout& unused) noexcept {
  for (const auto& extent : unused.extents) {
    try {
      inner_->release(extent);
    } catch (...) {
      // It belongs to an array of the catalog. If that is this one, the transaction can only be
      // aborted.
    }
  }
}

void shared_transaction::refuse_commit() noexcept {
  if (!is_of_this_process()) return;
  const std::lock_guard lock(state_lock_);
  if (inner_) inner_->refuse_commit();
}

void shared_transaction::note_lost_bytes(const written_array& array) noexcept {
  if (!is_of_this_process()) return;
  const std::lock_guard lock(state_lock_);
  if (inner_ && !array.removed) inner_->refuse_commit();
}

void shared_transaction::remove(std::string_view name) {
  const auto changes = lock(changes_lock_);
  const auto state = lock(state_lock_);
  require_active();
  erase(name);
}

void shared_transaction::discard(const written_array& made) noexcept {
  try {
    const auto changes = lock(changes_lock_);
    const auto state = lock(state_lock_);
    if (writes_.closed() || made.removed) return;
    // Another object has the elements of an array that was resized meanwhile.
    if (!made.resized) return erase(made.name);
  } catch (...) {
    // The array stays.
  }
  refuse_commit();
}

// The caller holds both locks.
void shared_transaction::erase(std::string_view name) {
  require_shape_at_rest(name);
  // The catalog comes first: it alone can fail. If it fails half-way, the transaction refuses every
  // other use of its space, and the mapping stays. Otherwise the array's space is free from here on,
  // but nothing else gets it before the mapping is detached, because that needs `state_lock_`.
  if (!inner_->erase(name)) throw_no_array(name);
  if (const auto known = written_.find(name); known != written_.end()) {
    known->second->removed = true;
    known->second->detach_from_file();
    known->second->tiles.reset();  // the tiles and the transaction own each other
    if (known->second->shared) give_back(known->second->record.dense());  // copied units
    written_.erase(known);
  }
}

void shared_transaction::rename(std::string_view from, std::string_view to) {
  const auto changes = lock(changes_lock_);
  const auto state = lock(state_lock_);
  require_active();
  require_new_name(to);
  if (!inner_->find(from)) throw_no_array(from);
  require_shape_at_rest(from);
  std::string key(to), name(to);  // nothing that can fail comes after the catalog
  inner_->rename(from, to);
  if (const auto known = written_.find(from); known != written_.end()) {
    auto moved = written_.extract(known);
    moved.key() = std::move(key);
    moved.mapped()->name = std::move(name);
    written_.insert(std::move(moved));
  }
}

void shared_transaction::set_attribute(std::string_view array, std::string_view key,
                                       std::string_view value) {
  const auto changes = lock(changes_lock_);
  const auto state = lock(state_lock_);
  require_active();
  auto record = inner_->find(array);
  if (!record) throw_no_array(array);
  format::set_attribute(*record, key, value);
  inner_->put(*record);
}

void shared_transaction::remove_attribute(std::string_view array, std::string_view key) {
  const auto changes = lock(changes_lock_);
  const auto state = lock(state_lock_);
  require_active();
  auto record = inner_->find(array);
  if (!record) throw_no_array(array);
  if (!format::remove_attribute(*record, key)) {
    error failure(errc::not_found, "no attribute " + detail::in_quotes(key),
                  {fmt::format("in {}", path())});
    std::vector<std::string> keys;
    for (const auto& attribute : record->attributes) keys.push_back(attribute.first);
    suggest_names(failure, key, keys);
    throw failure;
  }
  inner_->put(*record);
}

std::shared_ptr<const chunk_tiles> shared_transaction::read_only_tiles_of(
    const std::shared_ptr<written_array>& array) {
  return std::make_shared<chunk_tiles>(
      label(array->name), array->record,
      std::make_shared<transaction_chunks>(shared_from_this(), array, false));
}

// ---- the end ----------------------------------------------------------------------------------

// Computes the checksums of a dense array's segments, and stores them in an extent of their own. Of
// an updated array, only the segments that were copied are read. If there are none, it stays as it
// was.
void shared_transaction::checksum(written_array& array) {
  if (array.shared && array.shared->unchanged()) return;
  unit_copies(*this, array).join();
  std::unique_lock lock(state_lock_);
  auto record = inner_->find(array.name);
  if (!record) throw error(errc::not_found, fmt::format("no array '{}'", array.name));
  record->dense().extents = array.record.dense().extents;
  lock.unlock();  // change.5
  const std::uint64_t total = format::array_bytes(*record);
  std::vector<std::uint64_t> sums;
  std::vector<format::byte_interval> ranges;
  if (array.shared && array.shared->sums) sums = *array.shared->sums;
  if (sums.empty()) ranges.push_back({0, total});
  else
    for (const auto& [first, end] : array.shared->copied.ranges()) ranges.push_back({first, end});
  sums.resize(static_cast<std::size_t>(ceil_div(total, format::dense_segment_bytes)));
  sum_segments(
      *record, ranges, sums,
      [&](std::uint64_t offset, format::bytes_span into) { inner_->read(offset, into); },
      inner_->descriptor(), executor::current());
  if (sums.empty()) return;
  std::vector<std::byte> stored(sums.size() * 8);
  for (std::size_t i = 0; i < sums.size(); ++i) format::store(stored.data() + i * 8, sums[i]);
  lock.lock();
  auto& dense = record->dense();
  dense.checksums = inner_->allocate(stored.size());
  inner_->write(dense.checksums.offset, stored);
  dense.checksums_checksum = format::checksum_metadata(stored);
  inner_->put(*record);
  array.record.dense() = dense;
}

void shared_transaction::check_mappings() const {
  for (const auto& [name, array] : written_)
    if (array->bytes) array->bytes.check();
}

void shared_transaction::close(operation_gate& gate) noexcept {
  const std::lock_guard lock(state_lock_);
  gate.close();
}

// change.2: lets no operation begin, and waits for those that have begun. A running write fails at
// its next chunk, so it ends early.
void shared_transaction::end_operations() noexcept {
  close(writes_);
  close(chunks_);
  writes_.wait_for_visits();
  chunks_.wait_for_visits();
}

// change.6. `advice` goes into the message.
void shared_transaction::require_outside_of_writes(const char* advice) const {
  if (parallel::call_scope::inside(this))
    throw error(errc::invalid_argument, "a write of this transaction is not finished",
                {fmt::format("file {}, generation {}", path(), generation_), advice});
}

void shared_transaction::publish() {
  // This check comes first: bytes that the system has dropped must not be checksummed.
  inner_->check_written();
  check_mappings();
  for (const auto& [name, array] : written_)
    if (array->bytes && !array->bytes.empty()) detail::make_read_only(array->bytes);  // change.3
  for (const auto& entry : written_)  // clang 14 captures no binding
    if (entry.second->record.is_dense())
      with_context([&] { return fmt::format("checksum '{}'", entry.first); },
                   [&] { checksum(*entry.second); });
  const std::lock_guard lock(state_lock_);
  inner_->commit({.after_sync = [&] { check_mappings(); },
                  .before_release =
                      [&](format::commit_outcome outcome) {
                        if (outcome == format::commit_outcome::durable) keep_mappings();
                        detach_mappings();
                      }});
  metadata_bytes_ = inner_->metadata_bytes_written();
}

std::uint64_t shared_transaction::commit() {
  require_outside_of_writes(
      "commit was called from inside it, and would wait for itself: commit after it");
  auto changes = lock(changes_lock_);
  require_active();
  close(writes_);
  changes.unlock();           // change.6
  writes_.wait_for_visits();  // running writes store the rest of their chunks
  end_operations();           // single chunk operations may still run outside writes
  changes.lock();
  return with_context([&] { return "change " + path(); },
                      [&] {
                        try {
                          require_not_aborted();
                          publish();
                        } catch (...) {
                          end();
                          throw;
                        }
                        end();
                        return generation_;
                      });
}

// change.4, once the generation is durable. A tensor of the caller may still show a mapping of this
// transaction. The mapping stays and pins the generation. If that fails, `detach_mappings` cuts the
// mapping off from the file.
void shared_transaction::keep_mappings() noexcept {
  std::optional<format::generation_view> newest;
  for (const auto& [name, array] : written_) {
    if (!array->is_held_by_others()) {
      array->bytes = storage();
      continue;
    }
    try {
      if (!newest) newest = readers_->latest();
      // The name may lead to another file by now.
      if (newest->file() == inner_->file() && newest->generation() == generation_)
        array->keep_mapping(*newest);
    } catch (...) {
      // No pin could be taken. The commit is durable, but these tensors are detached.
    }
  }
}

// change.4: cuts the remaining mappings off from the file. The caller holds `state_lock_`.
void shared_transaction::detach_mappings() noexcept {
  for (const auto& [name, array] : written_) array->detach_from_file();
}

// Another thread may have aborted, and ended, the transaction while this one waited for writes.
void shared_transaction::require_not_aborted() const {
  if (abort_asked_)
    throw error(errc::invalid_argument, "the transaction was aborted during a write",
                {fmt::format("file {}, generation {}", path(), generation_)});
}

void shared_transaction::replace_by(const std::string& other) {
  require_outside_of_writes("replace_by was called from inside it, and would wait for itself");
  auto changes = lock(changes_lock_);
  require_active();
  if (other.empty())
    throw error(errc::invalid_argument, "the path of the other container is empty");
  // A relative path begins in the present working directory, which may differ from the one in which
  // the container was opened.
  std::error_code unknown;
  const std::string there = std::filesystem::absolute(other, unknown).string();
  if (unknown)
    throw error::from_errno(code_for_errno(unknown.value()),
                            "the working directory cannot be found", unknown.value(),
                            {"file " + other});
  close(writes_);
  changes.unlock();  // change.6
  end_operations();
  changes.lock();
  try {
    require_not_aborted();
    const std::lock_guard lock(state_lock_);
    detach_mappings();  // whether it succeeds or fails, the transaction ends
    inner_->replace_by(there);
  } catch (...) {
    end();
    throw;
  }
  end();
}

void shared_transaction::abort() noexcept {
  if (!is_of_this_process()) return;  // the parent goes on with it
  if (parallel::call_scope::inside(this)) {
    abort_asked_ = true;
    close(writes_);
    close(chunks_);
    return;
  }
  std::unique_lock changes(changes_lock_);
  if (!goes_on()) return;
  abort_asked_ = true;
  close(writes_);
  changes.unlock();  // change.6
  end_operations();
  changes.lock();
  end();
}

bool shared_transaction::goes_on() const noexcept {
  const std::lock_guard lock(state_lock_);
  return inner_.has_value();
}

// Detaches the mappings, and only then releases the writer lock: afterwards another writer may use
// their space.
void shared_transaction::end() noexcept {
  const std::lock_guard lock(state_lock_);
  detach_mappings();
  for (const auto& [name, array] : written_) array->tiles.reset();
  written_.clear();
  base_.reset();  // nothing reads the base generation any more
  if (inner_ && inner_->active()) inner_->abort();
  inner_.reset();
}

std::uint64_t shared_transaction::metadata_bytes_written() const noexcept {
  if (!is_of_this_process()) return 0;
  const std::lock_guard lock(state_lock_);
  return inner_ ? inner_->metadata_bytes_written() : metadata_bytes_;
}

}  // namespace shale::arrays
