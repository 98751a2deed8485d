#include "array/transaction_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "array/close_names.hpp"
#include "array/dense_bytes.hpp"
#include "array/new_names.hpp"
#include "format/bytes.hpp"
#include "format/checksum.hpp"
#include "shale/error.hpp"
#include "storage/mapped_extents.hpp"

namespace shale::arrays {

namespace {

// The chunks of an array as its transaction has changed them so far.
class transaction_chunks final : public chunk_store {
 public:
  transaction_chunks(std::shared_ptr<transaction_state> owner,
                     std::shared_ptr<const written_array> array, bool writable)
      : owner_(std::move(owner)), array_(std::move(array)), writable_(writable) {}

  std::optional<format::chunk_entry> find(std::uint64_t number) const override {
    return owner_->find_chunk(*array_, number);
  }
  void read(const format::chunk_entry& entry, format::bytes_span into) const override {
    owner_->read_chunk(entry, into);
  }
  int descriptor() const noexcept override { return owner_->descriptor(); }
  bool writable() const noexcept override { return writable_; }
  void put(std::uint64_t number, const format::encoded_chunk& chunk) override {
    if (!writable_) return chunk_store::put(number, chunk);
    owner_->put_chunk(*array_, number, chunk);
  }
  void erase(std::uint64_t number) override {
    if (!writable_) return chunk_store::erase(number);
    owner_->erase_chunk(*array_, number);
  }

 private:
  std::shared_ptr<transaction_state> owner_;
  std::shared_ptr<const written_array> array_;
  bool writable_;
};

void require_there(const written_array& array) {
  if (array.removed)
    throw error(errc::not_found, fmt::format("'{}' was removed in this transaction", array.name));
}

}  // namespace

transaction_state::transaction_state(std::shared_ptr<reader_file> readers,
                                     format::transaction inner, format::generation_view base)
    : readers_(std::move(readers)),
      generation_(inner.generation()),
      inner_(std::move(inner)),
      base_(std::move(base)) {}

transaction_state::~transaction_state() { abort(); }

std::string transaction_state::label(std::string_view name) const {
  return fmt::format("'{}' in {}", name, path());
}

void transaction_state::require_open(const operation_gate& gate) const {
  if (gate.closed())
    throw error(errc::invalid_argument, "the transaction has ended",
                {fmt::format("file {}, generation {}", path(), generation_),
                 "begin another one to change more"});
}

// Under `books_`, as everything that asks what has been removed.
void transaction_state::require_chunks(const written_array& array) const {
  require_open(chunks_);
  require_there(array);
}

// Under `books_`.
void transaction_state::throw_no_array(std::string_view name) const {
  error failure(errc::not_found, fmt::format("no array '{}'", name),
                {fmt::format("in {}", path())});
  suggest_names(failure, name, inner_->list({}, {}, names_compared_max));
  throw failure;
}

void transaction_state::require_writable(const written_array& array) const {
  const std::lock_guard lock(books_);
  require_active();
  require_there(array);
}

storage transaction_state::bytes_of(const written_array& array) const {
  const std::lock_guard lock(books_);
  require_active();
  require_there(array);
  return array.bytes;
}

std::shared_ptr<chunk_tiles> transaction_state::tiles_of(const written_array& array) const {
  const std::lock_guard lock(books_);
  require_active();
  require_there(array);
  return array.tiles;
}

// ---- arrays -----------------------------------------------------------------------------------

// A dense array's new bytes, mapped for writing.
void transaction_state::open_dense(written_array& array) {
  array.owner = std::make_shared<mapping_owner>();
  if (inner_->descriptor() >= 0) {
    array.owner->descriptor =
        detail::file_descriptor(::fcntl(inner_->descriptor(), F_DUPFD_CLOEXEC, 0));
    if (!array.owner->descriptor)
      throw error::from_errno(code_for_errno(errno), "cannot open the file once more", errno,
                              {"file " + path()});
  }
  array.bytes = map_dense(array.owner->descriptor.get(), array.record, access::read_write, path(),
                          array.owner);
  for (const auto& each : array.record.dense().extents) inner_->note_mapped_write(each);
}

std::shared_ptr<written_array> transaction_state::adopt(format::array_record record) {
  auto array = std::make_shared<written_array>();
  array->name = record.name;
  array->record = std::move(record);
  return array;
}

std::shared_ptr<written_array> transaction_state::create(format::array_record record) {
  const std::scoped_lock lock(turn_, books_);
  require_active();
  if (inner_->find(record.name))
    throw error(errc::already_exists, fmt::format("'{}' exists", record.name),
                {fmt::format("in {}", path()), "remove it first, or update it"});
  const auto array = adopt(std::move(record));
  auto& made = array->record;
  if (made.is_dense()) {
    const std::uint64_t bytes = format::array_bytes(made);
    if (bytes > 0) made.dense().extents.push_back(inner_->allocate(bytes));
    try {
      open_dense(*array);
      inner_->put(made);
    } catch (...) {
      cut_off(*array);
      give_back(made.dense());
      throw;
    }
  } else {
    inner_->put(made);
  }
  written_[array->name] = array;
  if (!made.is_dense())
    array->tiles = std::make_shared<chunk_tiles>(
        label(array->name), made,
        std::make_shared<transaction_chunks>(shared_from_this(), array, true));
  return array;
}

std::shared_ptr<written_array> transaction_state::update(std::string_view name) {
  const std::lock_guard turn(turn_);
  std::unique_lock lock(books_);
  require_active();
  if (const auto known = written_.find(name); known != written_.end()) return known->second;
  auto record = inner_->find(name);
  if (!record) throw_no_array(name);
  const auto array = adopt(*record);
  auto& changed = array->record;
  if (changed.is_dense()) {
    // Older generations keep their bytes: the new ones get space of their own.
    changed.dense() = {};
    const std::uint64_t bytes = format::array_bytes(changed);
    if (bytes > 0) changed.dense().extents.push_back(inner_->allocate(bytes));
    try {
      lock.unlock();  // change.5
      copy_dense(
          *record, changed,
          [&](std::uint64_t offset, format::bytes_span into) { inner_->read(offset, into); },
          [&](std::uint64_t offset, format::bytes_view from) { inner_->write(offset, from); },
          inner_->descriptor(), executor::shared());
      lock.lock();
      open_dense(*array);
      inner_->put(changed);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      cut_off(*array);
      give_back(changed.dense());
      throw;
    }
  }
  written_[array->name] = array;
  if (!changed.is_dense())
    array->tiles = std::make_shared<chunk_tiles>(
        label(array->name), changed,
        std::make_shared<transaction_chunks>(shared_from_this(), array, true));
  return array;
}

std::optional<transaction_state::found_array> transaction_state::find(std::string_view name) const {
  const std::lock_guard lock(books_);
  require_active();
  auto record = inner_->find(name);
  if (!record) return std::nullopt;
  found_array found{std::move(*record), nullptr, base_};
  if (const auto known = written_.find(name); known != written_.end()) {
    found.written = known->second;
    found.base.reset();
  }
  return found;
}

// Of an array that could not be made. What cannot be given back now is when the transaction ends.
void transaction_state::give_back(const format::dense_layout& unused) noexcept {
  try {
    for (const auto& each : unused.extents) inner_->release(each);
  } catch (...) {
    // The array may have got as far as the catalog: then the transaction can only be aborted.
  }
}

void transaction_state::remove(std::string_view name) {
  const std::scoped_lock lock(turn_, books_);
  require_active();
  // First the mapping: its space may be given to something else at once.
  if (const auto known = written_.find(name); known != written_.end()) {
    known->second->removed = true;
    cut_off(*known->second);
    known->second->tiles.reset();  // ends the circle of owners
    written_.erase(known);
  }
  if (!inner_->erase(name)) throw_no_array(name);
}

void transaction_state::rename(std::string_view from, std::string_view to) {
  const std::scoped_lock lock(turn_, books_);
  require_active();
  require_new_name(to);
  if (!inner_->find(from)) throw_no_array(from);
  inner_->rename(from, to);
  if (const auto known = written_.find(from); known != written_.end()) {
    auto moved = written_.extract(known);
    moved.key() = to;
    moved.mapped()->name = to;
    written_.insert(std::move(moved));
  }
}

void transaction_state::set_attribute(std::string_view array, std::string_view key,
                                      std::string_view value) {
  const std::scoped_lock lock(turn_, books_);
  require_active();
  auto record = inner_->find(array);
  if (!record) throw_no_array(array);
  format::set_attribute(*record, key, value);
  inner_->put(*record);
}

void transaction_state::remove_attribute(std::string_view array, std::string_view key) {
  const std::scoped_lock lock(turn_, books_);
  require_active();
  auto record = inner_->find(array);
  if (!record) throw_no_array(array);
  if (!format::remove_attribute(*record, key)) {
    error failure(errc::not_found, fmt::format("no attribute '{}'", key),
                  {fmt::format("in {}", path())});
    std::vector<std::string> keys;
    for (const auto& each : record->attributes) keys.push_back(each.first);
    suggest_names(failure, key, keys);
    throw failure;
  }
  inner_->put(*record);
}

// ---- chunks -----------------------------------------------------------------------------------

std::optional<format::chunk_entry> transaction_state::find_chunk(const written_array& array,
                                                                 std::uint64_t number) const {
  const std::lock_guard lock(books_);
  require_chunks(array);
  return inner_->find_chunk(array.name, number);
}

void transaction_state::read_chunk(const format::chunk_entry& entry,
                                   format::bytes_span into) const {
  const operation_gate::visit running(chunks_);
  require_open(chunks_);
  // The bytes alone are read outside the lock, and verified here as generation_view does.
  inner_->read(entry.offset, into);
  const std::uint64_t computed = format::checksum_data(into);
  if (computed != entry.checksum)
    throw error(errc::corrupt, "checksum mismatch",
                {fmt::format("{} bytes at byte {} of {}", entry.stored_bytes, entry.offset, path()),
                 fmt::format("stored {:016x}, computed {:016x}", entry.checksum, computed)});
}

void transaction_state::put_chunk(const written_array& array, std::uint64_t number,
                                  const format::encoded_chunk& chunk) {
  const operation_gate::visit running(chunks_);
  require_open(chunks_);
  format::chunk_entry entry{0, chunk.stored.size(), format::checksum_data(chunk.stored),
                            chunk.flags};
  format::extent space;
  {
    const std::lock_guard lock(books_);
    require_chunks(array);
    space = inner_->allocate_chunk(entry.stored_bytes);
  }
  entry.offset = space.offset;
  try {
    inner_->write(space.offset, chunk.stored);
  } catch (...) {
    const std::lock_guard lock(books_);
    inner_->release(space);
    throw;
  }
  const std::lock_guard lock(books_);
  if (array.removed) inner_->release(space);
  require_there(array);
  inner_->set_chunk(array.name, number, entry);
}

void transaction_state::erase_chunk(const written_array& array, std::uint64_t number) {
  const operation_gate::visit running(chunks_);
  const std::lock_guard lock(books_);
  require_chunks(array);
  inner_->erase_chunk(array.name, number);
}

int transaction_state::descriptor() const noexcept {
  const std::lock_guard lock(books_);
  return inner_ ? inner_->descriptor() : -1;
}

std::shared_ptr<const chunk_tiles> transaction_state::read_tiles(
    const std::shared_ptr<written_array>& array) {
  return std::make_shared<chunk_tiles>(
      label(array->name), array->record,
      std::make_shared<transaction_chunks>(shared_from_this(), array, false));
}

// ---- the end ----------------------------------------------------------------------------------

void transaction_state::cut_off(written_array& array) noexcept {
  if (array.bytes && !array.bytes.empty()) detail::abandon(array.bytes);
  array.bytes = storage();
}

// The sums of a dense array's segments, as they are now, into an extent of their own.
void transaction_state::checksum(written_array& array) {
  std::unique_lock lock(books_);
  auto record = inner_->find(array.name);
  if (!record) throw error(errc::not_found, fmt::format("no array '{}'", array.name));
  lock.unlock();  // change.5
  const std::vector<std::uint64_t> sums = checksum_segments(
      *record, [&](std::uint64_t offset, format::bytes_span into) { inner_->read(offset, into); },
      inner_->descriptor(), executor::shared());
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

void transaction_state::check_mappings() const {
  for (const auto& [name, array] : written_) array->bytes.check();
}

void transaction_state::close(operation_gate& gate) noexcept {
  const std::lock_guard lock(books_);
  gate.close();
}

void transaction_state::publish() {
  check_mappings();
  for (const auto& [name, array] : written_)
    if (array->record.is_dense() && !array->bytes.empty())
      detail::make_read_only(array->bytes);  // change.3
  for (const auto& each : written_)          // clang 14 captures no binding
    if (each.second->record.is_dense())
      with_context([&] { return fmt::format("checksum '{}'", each.first); },
                   [&] { checksum(*each.second); });
  const std::lock_guard lock(books_);
  inner_->commit([&] { check_mappings(); });
  metadata_bytes_ = inner_->metadata_bytes_written();
  keep_mappings();
}

std::uint64_t transaction_state::commit() {
  const std::lock_guard turn(turn_);
  require_active();
  close(writes_);
  writes_.wait_for_visits();
  close(chunks_);  // of what still goes on outside writes
  chunks_.wait_for_visits();
  return with_context([&] { return "change " + path(); },
                      [&] {
                        try {
                          publish();
                        } catch (...) {
                          end();
                          throw;
                        }
                        end();
                        return generation_;
                      });
}

// change.4, after commit. Between its end and the pin another writer may have removed the array and
// used its space again: the bytes are still ours if the newest generation says the same of them.
void transaction_state::keep_mappings() noexcept {
  std::optional<format::generation_view> newest;
  for (const auto& [name, array] : written_) {
    // One handle is this transaction's own; any other is somebody's tensor.
    if (!array->record.is_dense() || array->bytes.use_count() <= 1) {
      array->bytes = storage();
      continue;
    }
    try {
      if (!newest) newest = readers_->latest();
      const auto now = newest->find(name);
      if (!now || !now->is_dense() || now->dense().extents != array->record.dense().extents ||
          now->dense().checksums_checksum != array->record.dense().checksums_checksum)
        continue;  // `end` cuts it off
      array->owner->pin = newest;
      array->bytes = storage();
    } catch (...) {
      // The file cannot be read any more. The commit stands; these tensors do not.
    }
  }
}

void transaction_state::abort() noexcept {
  // A forked child has no part in it, and other threads of its parent may have held the locks.
  if (::getpid() != process_) return;
  const std::lock_guard turn(turn_);
  if (writes_.closed()) return;
  close(writes_);
  close(chunks_);  // so that writes end early
  writes_.wait_for_visits();
  chunks_.wait_for_visits();
  end();
}

// Cuts off what is still mapped, and only then lets the writer lock go.
void transaction_state::end() noexcept {
  const std::lock_guard lock(books_);
  for (const auto& [name, array] : written_) {
    cut_off(*array);
    array->tiles.reset();
  }
  written_.clear();
  base_.reset();  // a pin of ours would keep the file from shrinking again
  if (inner_->active()) inner_->abort();
  inner_.reset();
}

std::uint64_t transaction_state::metadata_bytes_written() const noexcept {
  const std::lock_guard lock(books_);
  return inner_ ? inner_->metadata_bytes_written() : metadata_bytes_;
}

}  // namespace shale::arrays
