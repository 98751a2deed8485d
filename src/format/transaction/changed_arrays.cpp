#include "format/transaction/changed_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/printable.hpp"
#include "format/bytes/file_layout.hpp"
#include "format/bytes/range_set.hpp"
#include "format/catalog/array_name.hpp"
#include "format/catalog/catalog.hpp"
#include "format/catalog/descriptor.hpp"
#include "format/chunks/chunk_index.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "format/pages/page.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

// Whether the stored chunks of `a` are valid chunks of `b`, with the same numbers and elements.
bool same_chunks(const array_record& a, const array_record& b) {
  return !a.is_dense() && !b.is_dense() && a.dtype == b.dtype && a.shape == b.shape &&
         a.chunked().chunk_shape == b.chunked().chunk_shape &&
         a.chunked().grid_capacity == b.chunked().grid_capacity &&
         a.chunked().stages == b.chunked().stages;
}

[[noreturn]] void throw_no_array(std::string_view name) {
  throw error(errc::not_found, "no array " + shale::detail::in_quotes(name));
}

// Throws   invalid_argument if the catalog has no room for the record. This is checked before a
//          change begins, because the catalog would refuse the record in the middle of the change.
//          A record can be too long because of its extents: nothing else limits their number
void require_room(const array_record& record) {
  const std::size_t bytes = encode_descriptor(record).size();
  if (bytes > value_bytes_max)
    throw error(errc::invalid_argument, "not an array that can be stored",
                {"array '" + record.name + "'",
                 fmt::format("its descriptor has {} bytes, at most {} are possible", bytes,
                             value_bytes_max),
                 "attributes and extents share them: remove attributes, or commit more often"});
}

// The extents that the record of a dense array refers to.
std::vector<extent> extents_of(const array_record& record) {
  if (!record.is_dense()) return {};
  std::vector<extent> extents = record.dense().extents;
  if (record.dense().checksums.bytes != 0) extents.push_back(record.dense().checksums);
  return extents;
}

// The space that a new record of an array adds to that of the old one, and the space that it
// releases.
struct space_change {
  std::vector<byte_interval> fresh;     // ranges that the transaction allocated for it, in order
  std::vector<byte_interval> released;  // ranges that no longer belong to it, in order
};

[[noreturn]] void throw_foreign(const array_record& record, const extent& piece) {
  throw error(errc::invalid_argument, "an extent was not allocated by this transaction",
              {"array '" + record.name + "'",
               fmt::format("byte {} with {} bytes", piece.offset, piece.bytes)});
}

std::uint64_t bytes_of(const std::vector<extent>& extents) {
  std::uint64_t bytes = 0;
  for (const extent& piece : extents) bytes += page_space(piece.bytes);
  return bytes;
}

std::uint64_t bytes_of(const range_set& set) {
  std::uint64_t bytes = 0;
  for (const auto& [first, end] : set.ranges()) bytes += end - first;
  return bytes;
}

// Compares the extents of two records by the bytes that they take: a new record may keep parts of
// an old extent, and may have joined extents that follow each other in the file.
// Throws invalid_argument if the new one names a byte twice, or one that is neither of the old
// record nor allocated by the transaction; corrupt if the old one named a byte twice.
space_change space_change_of(const array_record& record, const std::vector<extent>& had,
                             const generation_space& space) {
  range_set kept;
  for (const extent& piece : had) kept.unite(piece.offset, piece.offset + page_space(piece.bytes));
  space_change change;
  range_set named;
  for (const extent& piece : extents_of(record)) {
    const std::uint64_t end = piece.offset + page_space(piece.bytes);
    if (named.overlaps(piece.offset, end)) {
      if (bytes_of(had) == bytes_of(kept)) throw_foreign(record, piece);
      throw error(errc::corrupt, "two extents of an array have bytes in common",
                  {"array '" + record.name + "'"});
    }
    named.unite(piece.offset, end);
    for (std::uint64_t at = piece.offset; at < end;) {
      const std::uint64_t next = kept.contains(at, at + page_bytes)
                                     ? std::min(end, kept.end_of_run(at))
                                     : at + space.unclaimed_space(at);
      if (next == at || next > end) throw_foreign(record, piece);
      if (!kept.contains(at, next)) change.fresh.push_back({at, next});
      at = next;
    }
  }
  for (const extent& piece : had) {
    const std::uint64_t end = piece.offset + page_space(piece.bytes);
    for (std::uint64_t at = piece.offset; at < end;) {
      const std::uint64_t next = std::min(end, named.end_of_run(at));
      if (!named.contains(at, next)) change.released.push_back({at, next});
      at = next;
    }
  }
  return change;
}

}  // namespace

changed_arrays::changed_arrays(page_reader& reader, generation_space& space, page_ref catalog,
                               std::uint64_t array_count, std::uint64_t generation) noexcept
    : reader_(&reader),
      space_(&space),
      generation_(generation),
      catalog_(tree_kind::catalog, reader, catalog, &space),
      array_count_(array_count) {}

// Runs a change that has several steps. If it fails between two of them, the trees contradict each
// other, and the transaction can only be aborted.
template <class Body>
void changed_arrays::change(Body&& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    broken_ = errc::out_of_memory;
    throw;
  } catch (const error& failed) {
    broken_ = failed.code();
    throw;
  }
}

// ---- the catalog ------------------------------------------------------------------------------

std::optional<array_record> changed_arrays::find(std::string_view name) const {
  if (const auto found = open_.find(name); found != open_.end()) return found->second.record;
  return find_array(catalog_, name, space_->end_of_file());
}

std::vector<std::string> changed_arrays::list(std::string_view prefix, std::string_view after,
                                              std::size_t limit) const {
  return list_names(catalog_, prefix, after, limit);
}

std::vector<level_entry> changed_arrays::children(std::string_view level, std::string_view after,
                                                  std::size_t limit) const {
  return list_children(catalog_, level, after, limit);
}

void changed_arrays::store(const array_record& record) {
  if (catalog_.insert(record.name, encode_descriptor(record))) ++array_count_;
}

// Releases the space of the record's chunks and of their index.
void changed_arrays::drop_chunks(const array_record& record) {
  const auto found = open_.find(record.name);
  tree index = found != open_.end() ? std::move(found->second.index) : index_of(record);
  if (found != open_.end()) open_.erase(found);
  for (auto cursor = index.seek({}); cursor.valid(); cursor.next()) {
    const std::uint64_t number = number_of_key(cursor.key(), record);
    space_->release_chunk(
        decode_chunk_entry(cursor.short_value(), record, number, space_->end_of_file()));
  }
  index.clear();
}

// Releases everything that the record refers to.
void changed_arrays::drop_layout(const array_record& record) {
  if (!record.is_dense()) return drop_chunks(record);
  for (const extent& piece : extents_of(record)) space_->release(piece);
}

void changed_arrays::put(array_record record) {
  require_valid(record);
  const auto old = find(record.name);
  record.created = old ? old->created : generation_;
  record.modified = generation_;
  require_room(record);
  const space_change moved =
      space_change_of(record, old ? extents_of(*old) : std::vector<extent>(), *space_);
  change([&] {
    if (old && same_chunks(*old, record)) {
      const chunked_layout& kept = old->chunked();
      record.chunked().index = kept.index;
      record.chunked().chunk_count = kept.chunk_count;
      record.chunked().stored_bytes = kept.stored_bytes;
      const auto open = open_.find(record.name);
      if (open != open_.end()) open->second.record = record;
    } else {
      if (old && !old->is_dense()) drop_chunks(*old);
      if (!record.is_dense()) {
        record.chunked().index = {};
        record.chunked().chunk_count = 0;
        record.chunked().stored_bytes = 0;
      }
    }
    for (const auto& [first, end] : moved.released) space_->release({first, end - first});
    for (const auto& [first, end] : moved.fresh) space_->claim({first, end - first}, end - first);
    store(record);
  });
}

bool changed_arrays::erase(std::string_view name) {
  const auto record = find(name);
  if (!record) return false;
  change([&] {
    drop_layout(*record);
    catalog_.erase(name);
    --array_count_;
  });
  return true;
}

void changed_arrays::rename(std::string_view from, std::string_view to) {
  require_valid_name(to);
  auto record = find(from);
  if (!record) throw_no_array(from);
  if (from == to) return;
  if (find(to))
    throw error(errc::already_exists, fmt::format("array '{}' exists", to),
                {fmt::format("'{}' cannot take its name", from)});
  record->name = to;
  record->modified = generation_;
  require_room(*record);
  change([&] {
    if (const auto found = open_.find(from); found != open_.end()) {
      auto open = open_.extract(found);
      open.key() = to;
      open.mapped().record = *record;
      open_.insert(std::move(open));
    }
    catalog_.erase(from);
    --array_count_;
    store(*record);
  });
}

// ---- chunk indexes ----------------------------------------------------------------------------

tree changed_arrays::index_of(const array_record& record) {
  return tree(tree_kind::chunks, *reader_, record.chunked().index, space_);
}

changed_arrays::open_array& changed_arrays::open(std::string_view name) {
  const auto found = open_.find(name);
  if (found != open_.end()) return found->second;
  auto record = find_array(catalog_, name, space_->end_of_file());
  if (!record) throw_no_array(name);
  require_chunked(*record);
  tree index = index_of(*record);
  return open_.emplace(std::string(name), open_array{std::move(*record), std::move(index)})
      .first->second;
}

std::optional<chunk_entry> changed_arrays::find_chunk(const open_array& array,
                                                      std::uint64_t number) const {
  return format::find_chunk(array.index, array.record, number, space_->end_of_file());
}

std::optional<chunk_entry> changed_arrays::find_chunk(std::string_view name, std::uint64_t number) {
  return find_chunk(open(name), number);
}

std::vector<numbered_chunk> changed_arrays::chunks(std::string_view name, std::uint64_t first,
                                                   std::size_t limit) {
  const open_array& array = open(name);
  return list_chunks(array.index, array.record, first, limit, space_->end_of_file());
}

void changed_arrays::replace_chunk(open_array& array, const numbered_chunk& made) {
  if (const auto old = find_chunk(array, made.number)) forget_chunk(array, *old);
  array.index.insert(chunk_key(made.number), encode_chunk_entry(made.entry));
  ++array.record.chunked().chunk_count;
  array.record.chunked().stored_bytes += made.entry.stored_bytes;
}

// Releases the space of a chunk whose entry is replaced or erased, and counts it no longer.
void changed_arrays::forget_chunk(open_array& array, const chunk_entry& replaced) {
  space_->release_chunk(replaced);
  array.record.chunked().stored_bytes -= replaced.stored_bytes;
  --array.record.chunked().chunk_count;
}

void changed_arrays::set_chunk(std::string_view name, std::uint64_t number,
                               const chunk_entry& entry) {
  open_array& array = open(name);
  const dims& capacity = array.record.chunked().grid_capacity;
  if (!is_in_grid(array.record, number))
    throw error(errc::invalid_argument, "no such chunk",
                {fmt::format("array '{}', chunk {}, shape {}, grid capacity {}", name, number,
                             to_string(array.record.shape), to_string(capacity))});
  if (entry.stored_bytes > chunk_bytes(array.record))
    throw error(errc::invalid_argument, "a stored chunk is longer than the chunk",
                {fmt::format("array '{}', chunk {}: {} bytes of {}", name, number,
                             entry.stored_bytes, chunk_bytes(array.record))});
  space_->claim({entry.offset, entry.stored_bytes}, chunk_space(entry.stored_bytes));
  change([&] {
    replace_chunk(array, {number, entry});
    array.record.modified = generation_;
    array.changed = true;
  });
}

bool changed_arrays::erase_chunk(std::string_view name, std::uint64_t number) {
  open_array& array = open(name);
  const auto old = find_chunk(array, number);
  if (!old) return false;
  change([&] {
    forget_chunk(array, *old);
    array.index.erase(chunk_key(number));
    array.record.modified = generation_;
    array.changed = true;
  });
  return true;
}

cut_chunks changed_arrays::chunks_cut_by(std::string_view name, const dims& shape) {
  const open_array& array = open(name);
  return format::chunks_cut_by(shape, array.index, array.record, space_->end_of_file());
}

// Moves all entries to a new index, with their numbers in the capacity of `layout`. They keep their
// order (numbers.2). No chunk is touched. The index of a damaged file may hold entries that no
// reader would accept. They are refused, because after the move they could be entries of other
// chunks.
void changed_arrays::renumber(open_array& array, const chunked_layout& layout) {
  tree moved(tree_kind::chunks, *reader_, {}, space_);
  for (auto at = array.index.seek({}); at.valid(); at.next()) {
    const std::uint64_t number = number_of_key(at.key(), array.record);
    if (!is_in_grid(array.record, number))
      throw error(
          errc::corrupt, "a chunk index is damaged",
          {fmt::format("array '{}': chunk {} is outside the grid", array.record.name, number)});
    (void)decode_chunk_entry(at.short_value(), array.record, number, space_->end_of_file());
    const dims chunk = chunk_index(array.record.chunked(), number);
    moved.insert(chunk_key(chunk_number(layout, chunk)), at.short_value());
  }
  array.index.clear();
  array.index = std::move(moved);
}

void changed_arrays::resize(std::string_view name, const dims& shape,
                            std::span<const numbered_chunk> replaced) {
  open_array& array = open(name);
  array_record resized = array.record;
  resized.shape = shape;
  if (shape.size() == array.record.shape.size())
    resized.chunked().grid_capacity =
        grown_capacity(array.record.chunked().grid_capacity, chunk_grid(resized));
  require_valid(resized);
  const cut_chunks cut = chunks_cut_by(name, shape);
  const bool fits = std::equal(
      cut.across.begin(), cut.across.end(), replaced.begin(), replaced.end(),
      [](const numbered_chunk& a, const numbered_chunk& b) { return a.number == b.number; });
  if (!fits)
    throw error(errc::invalid_argument, "chunks that the new shape cuts through are not replaced",
                {fmt::format("array '{}', shape {} to {}: {} chunks are cut through, got {}", name,
                             to_string(array.record.shape), to_string(shape), cut.across.size(),
                             replaced.size())});
  change([&] {
    for (const auto& [number, entry] : cut.outside) {
      forget_chunk(array, entry);
      array.index.erase(chunk_key(number));
    }
    for (const numbered_chunk& made : replaced) {
      if (made.entry.stored_bytes == 0) {
        forget_chunk(array, *find_chunk(array, made.number));
        array.index.erase(chunk_key(made.number));
      } else {
        space_->claim({made.entry.offset, made.entry.stored_bytes},
                      chunk_space(made.entry.stored_bytes));
        replace_chunk(array, made);
      }
    }
    if (!same_numbers(array.record.chunked().grid_capacity, resized.chunked().grid_capacity))
      renumber(array, resized.chunked());
    array.record.shape = shape;
    array.record.chunked().grid_capacity = resized.chunked().grid_capacity;
    array.record.modified = generation_;
    array.changed = true;
  });
}

// ---- writing ----------------------------------------------------------------------------------

page_ref changed_arrays::write() {
  for (auto& [name, array] : open_) {
    if (!array.changed) continue;
    array.record.chunked().index = space_->write(array.index);
    store(array.record);
  }
  return space_->write(catalog_);
}

}  // namespace shale::format
