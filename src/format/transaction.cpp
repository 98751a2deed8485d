// What a transaction changes. How it begins, is written and ends: transaction_commit.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "format/bytes.hpp"
#include "format/checksum.hpp"
#include "format/container_state.hpp"
#include "format/file_io.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

// Whether chunks written under one record mean the same under the other.
bool same_chunks(const array_record& a, const array_record& b) {
  return !a.is_dense() && !b.is_dense() && a.dtype == b.dtype &&
         a.chunked().chunk_shape == b.chunked().chunk_shape &&
         a.chunked().grid_capacity == b.chunked().grid_capacity &&
         a.chunked().stages == b.chunked().stages;
}

[[noreturn]] void throw_no_array(std::string_view name) {
  throw error(errc::not_found, fmt::format("no array '{}'", name));
}

}  // namespace

void transaction::state::require_active() const {
  if (!active)
    throw error(errc::invalid_argument, "the transaction has ended",
                {"begin a new one on file " + base.handle->path});
  if (base.lock && base.lock->left_behind_by_fork())
    throw error(errc::invalid_argument, "the transaction is another process's",
                {"this one was forked from it: begin one of its own on file " + base.handle->path});
}

// Runs something that changes more than one thing: if it fails half-way, the transaction can only
// be aborted.
template <class Body>
decltype(auto) transaction::state::change(Body&& body) {
  require_active();
  struct guard {
    bool& broken;
    bool done = false;
    ~guard() {
      if (!done) broken = true;
    }
  } watch{broken};
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
    watch.done = true;
  } else {
    auto result = body();
    watch.done = true;
    return result;
  }
}

// ---- the catalog ------------------------------------------------------------------------------

const transaction::state::open_array* transaction::state::opened(std::string_view name) const {
  const auto found = arrays.find(name);
  return found == arrays.end() ? nullptr : &found->second;
}

std::optional<array_record> transaction::state::find(std::string_view name) const {
  if (const open_array* const array = opened(name)) return array->record;
  return find_array(catalog, name, space->end_of_file());
}

tree transaction::state::index_of(const array_record& record) {
  return tree(tree_kind::chunks, reader, record.chunked().index, this);
}

transaction::state::open_array& transaction::state::open(std::string_view name) {
  const auto found = arrays.find(name);
  if (found != arrays.end()) return found->second;
  auto record = find_array(catalog, name, space->end_of_file());
  if (!record) throw_no_array(name);
  require_chunked(*record);
  tree index = index_of(*record);
  return arrays.emplace(std::string(name), open_array{std::move(*record), std::move(index)})
      .first->second;
}

void transaction::state::store(const array_record& record) {
  if (catalog.insert(record.name, encode_descriptor(record))) ++root.array_count;
}

bool transaction::state::can_claim(const extent& used, std::uint64_t bytes) const {
  const auto found = unclaimed.find(used.offset);
  return found != unclaimed.end() && found->second == bytes;
}

void transaction::state::claim(const extent& used, std::uint64_t bytes) {
  if (!can_claim(used, bytes))
    throw error(errc::invalid_argument, "an extent that was not allocated for this",
                {fmt::format("byte {} with {} bytes", used.offset, used.bytes)});
  unclaimed.erase(used.offset);
}

// Releases what the record's chunks and their index take up.
void transaction::state::drop_chunks(std::string_view name, const array_record& record) {
  const auto found = arrays.find(name);
  tree index = found != arrays.end() ? std::move(found->second.index) : index_of(record);
  if (found != arrays.end()) arrays.erase(found);
  for (auto at = index.seek({}); at.valid(); at.next()) {
    const std::uint64_t number = at.key().size() == 8 ? load_ordered(at.key(), 0) : 0;
    const chunk_entry entry =
        decode_chunk_entry(at.short_value(), record, number, space->end_of_file());
    space->release(entry.offset, chunk_space(entry.stored_bytes));
  }
  index.clear();
}

// Releases everything that the record refers to.
void transaction::state::drop_layout(const array_record& record) {
  if (!record.is_dense()) return drop_chunks(record.name, record);
  for (const extent& piece : record.dense().extents) release(piece);
  if (record.dense().checksums.bytes != 0) release(record.dense().checksums);
}

void transaction::state::put(array_record record) {
  require_valid(record);
  const auto old = find(record.name);
  record.created = old ? old->created : generation;
  record.modified = generation;
  const bool keeps_chunks = old && same_chunks(*old, record);

  // Extents are the old record's or fresh; checked before anything changes.
  std::vector<extent> wanted;
  if (record.is_dense()) {
    wanted = record.dense().extents;
    if (record.dense().checksums.bytes != 0) wanted.push_back(record.dense().checksums);
  }
  std::vector<extent> had;
  if (old && old->is_dense()) {
    had = old->dense().extents;
    if (old->dense().checksums.bytes != 0) had.push_back(old->dense().checksums);
  }
  const auto same_place = [](const extent& piece) {
    return [&piece](const extent& other) {
      return other.offset == piece.offset && page_space(other.bytes) == page_space(piece.bytes);
    };
  };
  std::vector<extent> fresh;
  for (const extent& piece : wanted) {
    const bool repeated = std::count_if(wanted.begin(), wanted.end(), same_place(piece)) > 1;
    if (!repeated && std::any_of(had.begin(), had.end(), same_place(piece))) continue;
    if (repeated || !can_claim(piece, page_space(piece.bytes)))
      throw error(errc::invalid_argument, "an extent that was not allocated for this",
                  {"array '" + record.name + "'",
                   fmt::format("byte {} with {} bytes", piece.offset, piece.bytes)});
    fresh.push_back(piece);
  }

  change([&] {
    if (keeps_chunks) {
      const chunked_layout& kept = old->chunked();
      record.chunked().index = kept.index;
      record.chunked().chunk_count = kept.chunk_count;
      record.chunked().stored_bytes = kept.stored_bytes;
      const auto open = arrays.find(record.name);
      if (open != arrays.end()) open->second.record = record;
    } else {
      if (old && !old->is_dense()) drop_chunks(record.name, *old);
      if (!record.is_dense()) {
        record.chunked().index = {};
        record.chunked().chunk_count = 0;
        record.chunked().stored_bytes = 0;
      }
    }
    for (const extent& piece : had)
      if (std::none_of(wanted.begin(), wanted.end(), same_place(piece))) release(piece);
    for (const extent& piece : fresh) claim(piece, page_space(piece.bytes));
    store(record);
  });
}

// Runs a change of the space map and of what is unclaimed in it; without memory for the second, the
// first is wrong.
template <class Body>
decltype(auto) transaction::state::enter_in_books(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    broken = true;
    throw;
  }
}

extent transaction::state::allocate(std::uint64_t bytes) {
  require_active();
  if (bytes == 0) return {};
  const std::uint64_t end_before = space->end_of_file();
  const std::uint64_t whole = page_space(bytes);
  const extent found = enter_in_books([&] {
    const extent taken = space->allocate(bytes, dense_alignment(bytes));
    unclaimed.emplace(taken.offset, whole);
    return taken;
  });
  open_file& file = *base.handle->data;
  const std::string& path = base.handle->path;
  try {
    // Old bytes, of freed ranges or of transactions that died, must not show through.
    const std::uint64_t size = size_bytes(file, path);
    if (found.offset < size) {
      const os_result result = uninterrupted(
          [&] { return file.punch(found.offset, std::min(whole, size - found.offset)); });
      if (result < 0) throw failure("clear space", result, path);
    }
    allocate_space(file, found.offset, whole, path);
  } catch (...) {
    enter_in_books([&] { space->withdraw({found.offset, whole}, end_before); });
    unclaimed.erase(found.offset);
    throw;
  }
  return found;
}

void transaction::state::release_unclaimed(const extent& unused) {
  const auto found = unclaimed.find(unused.offset);
  if (found == unclaimed.end())
    throw error(errc::invalid_argument, "an extent that is not this transaction's to give back",
                {fmt::format("byte {} with {} bytes", unused.offset, unused.bytes)});
  enter_in_books([&] { space->release(found->first, found->second); });
  unclaimed.erase(found);
}

// ---- the handle -------------------------------------------------------------------------------

transaction::transaction(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
transaction::transaction(transaction&&) noexcept = default;
transaction& transaction::operator=(transaction&&) noexcept = default;
transaction::~transaction() = default;

std::uint64_t transaction::generation() const noexcept { return state_->generation; }

bool transaction::active() const noexcept { return state_ != nullptr && state_->active; }

std::optional<array_record> transaction::find(std::string_view name) const {
  state_->require_active();
  return state_->find(name);
}

std::vector<std::string> transaction::list(std::string_view prefix, std::string_view after,
                                           std::size_t limit) const {
  state_->require_active();
  return list_arrays(state_->catalog, prefix, after, limit);
}

void transaction::put(const array_record& record) {
  state_->require_active();
  state_->put(record);
}

bool transaction::erase(std::string_view name) {
  state_->require_active();
  const auto record = state_->find(name);
  if (!record) return false;
  state_->change([&] {
    state_->drop_layout(*record);
    state_->catalog.erase(name);
    --state_->root.array_count;
  });
  return true;
}

void transaction::rename(std::string_view from, std::string_view to) {
  state_->require_active();
  require_valid_name(to);
  auto record = state_->find(from);
  if (!record) throw_no_array(from);
  if (from == to) return;
  if (state_->find(to))
    throw error(errc::already_exists, fmt::format("array '{}' exists", to),
                {fmt::format("'{}' cannot take its name", from)});
  state_->change([&] {
    record->name = to;
    record->modified = state_->generation;
    if (const auto found = state_->arrays.find(from); found != state_->arrays.end()) {
      auto open = state_->arrays.extract(found);
      open.key() = to;
      open.mapped().record = *record;
      state_->arrays.insert(std::move(open));
    }
    state_->catalog.erase(from);
    --state_->root.array_count;
    state_->store(*record);
  });
}

extent transaction::allocate(std::uint64_t bytes) { return state_->allocate(bytes); }

extent transaction::allocate_chunk(std::uint64_t stored_bytes) {
  state_->require_active();
  if (stored_bytes == 0 || stored_bytes > chunk_bytes_max)
    throw error(errc::invalid_argument, "not the size of a chunk",
                {fmt::format("1 to {} bytes, got {}", chunk_bytes_max, stored_bytes)});
  return state_->enter_in_books([&] {
    const extent found = state_->space->allocate_chunk(stored_bytes);
    state_->unclaimed.emplace(found.offset, chunk_space(stored_bytes));
    return found;
  });
}

void transaction::release(const extent& unused) {
  state_->require_active();
  state_->release_unclaimed(unused);
}

void transaction::write(std::uint64_t offset, bytes_view bytes) const {
  try {
    write_all(*state_->base.handle->data, offset, bytes, state_->base.handle->path);
  } catch (...) {
    state_->write_failed.store(true);
    throw;
  }
}

void transaction::read(std::uint64_t offset, bytes_span into) const {
  read_exact(*state_->base.handle->data, offset, into, state_->base.handle->path);
}

int transaction::descriptor() const noexcept { return state_->base.handle->data->descriptor(); }

void transaction::note_mapped_write(const extent& written) {
  state_->require_active();
  state_->base.handle->data->note_mapped_write(written.offset, written.bytes);
}

std::optional<chunk_entry> transaction::find_chunk(std::string_view name,
                                                   std::uint64_t number) const {
  state_->require_active();
  const state::open_array& array = state_->open(name);
  return format::find_chunk(array.index, array.record, number, state_->space->end_of_file());
}

std::vector<numbered_chunk> transaction::chunks(std::string_view name, std::uint64_t first,
                                                std::size_t limit) const {
  state_->require_active();
  const state::open_array& array = state_->open(name);
  return list_chunks(array.index, array.record, first, limit, state_->space->end_of_file());
}

void transaction::read_chunk(const chunk_entry& entry, bytes_span into) const {
  format::read_chunk(*state_->base.handle, entry, into);
}

void transaction::set_chunk(std::string_view name, std::uint64_t number, const chunk_entry& entry) {
  state_->require_active();
  state::open_array& array = state_->open(name);
  const dims& capacity = array.record.chunked().grid_capacity;
  const dims last = chunk_index(array.record.chunked(), number);
  if (chunk_number(array.record.chunked(), last) != number)
    throw error(
        errc::invalid_argument, "no such chunk",
        {fmt::format("array '{}', chunk {}, grid capacity {}", name, number, to_string(capacity))});
  if (entry.stored_bytes > chunk_bytes(array.record))
    throw error(errc::invalid_argument, "a stored chunk is longer than the chunk",
                {fmt::format("array '{}', chunk {}: {} bytes of {}", name, number,
                             entry.stored_bytes, chunk_bytes(array.record))});
  state_->claim({entry.offset, entry.stored_bytes}, chunk_space(entry.stored_bytes));
  state_->change([&] {
    chunked_layout& layout = array.record.chunked();
    const auto old =
        format::find_chunk(array.index, array.record, number, state_->space->end_of_file());
    if (old) {
      state_->space->release(old->offset, chunk_space(old->stored_bytes));
      layout.stored_bytes -= old->stored_bytes;
      --layout.chunk_count;
    }
    array.index.insert(chunk_key(number), encode_chunk_entry(entry));
    ++layout.chunk_count;
    layout.stored_bytes += entry.stored_bytes;
    array.record.modified = state_->generation;
    array.changed = true;
  });
}

bool transaction::erase_chunk(std::string_view name, std::uint64_t number) {
  state_->require_active();
  state::open_array& array = state_->open(name);
  const auto old =
      format::find_chunk(array.index, array.record, number, state_->space->end_of_file());
  if (!old) return false;
  state_->change([&] {
    chunked_layout& layout = array.record.chunked();
    state_->space->release(old->offset, chunk_space(old->stored_bytes));
    array.index.erase(chunk_key(number));
    layout.stored_bytes -= old->stored_bytes;
    --layout.chunk_count;
    array.record.modified = state_->generation;
    array.changed = true;
  });
  return true;
}

void transaction::store_chunk(std::string_view name, std::uint64_t number,
                              const encoded_chunk& chunk) {
  const extent where = allocate_chunk(chunk.stored.size());
  write(where.offset, chunk.stored);
  set_chunk(name, number, {where.offset, where.bytes, checksum_data(chunk.stored), chunk.flags});
}

std::uint64_t transaction::commit(const std::function<void()>& after_sync) {
  return state_->commit(after_sync);
}

void transaction::abort() noexcept {
  if (active()) state_->finish();
}

std::uint64_t transaction::metadata_bytes_written() const noexcept {
  return state_->metadata_bytes;
}

}  // namespace shale::format
