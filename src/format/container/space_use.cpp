#include "format/container/space_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "format/bytes/file_layout.hpp"
#include "format/catalog/catalog.hpp"
#include "format/chunks/chunk_index.hpp"
#include "format/generations/generation_state.hpp"
#include "format/generations/retained_generations.hpp"
#include "format/generations/superblock_slots.hpp"
#include "format/os/file_io.hpp"
#include "format/space/space_record.hpp"
#include "format/transaction/commit.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

// The number of names, and of chunks, that are listed at a time.
constexpr std::size_t entries_per_step = 4096;

// The pages and long values of a tree.
std::uint64_t bytes_of(const tree& counted) {
  std::uint64_t bytes = 0;
  counted.for_each_extent([&](const extent& range) { bytes += page_space(range.bytes); });
  return bytes;
}

array_space space_of(page_reader& reader, const array_record& record) {
  array_space space{.name = record.name};
  if (record.is_dense()) {
    for (const extent& piece : record.dense().extents) space.data_bytes += page_space(piece.bytes);
    space.index_bytes = page_space(record.dense().checksums.bytes);
    return space;
  }
  const tree index(tree_kind::chunks, reader, record.chunked().index);
  space.index_bytes = bytes_of(index);
  std::uint64_t next = 0;
  while (true) {
    const auto chunks = list_chunks(index, record, next, entries_per_step, reader.end_of_file());
    for (const auto& chunk : chunks) space.data_bytes += chunk_space(chunk.entry.stored_bytes);
    if (chunks.size() < entries_per_step || chunks.back().number == UINT64_MAX) return space;
    next = chunks.back().number + 1;
  }
}

[[noreturn]] void throw_contradiction(std::uint64_t counted, std::uint64_t end_of_file) {
  throw error(errc::corrupt, "the metadata contradicts itself",
              {fmt::format("arrays, metadata and unused space are {} bytes, the generation ends at "
                           "byte {}",
                           counted, end_of_file),
               "run `shale verify` to see the damage"});
}

// Throws as soon as the arrays together exceed the file: a hostile file may name its bytes many
// times, and the walk over them would never end.
std::vector<array_space> space_of_arrays(page_reader& reader, const tree& catalog) {
  std::vector<array_space> arrays;
  std::uint64_t counted = 0;
  std::vector<std::string> names;
  do {
    names =
        list_arrays(catalog, {}, names.empty() ? std::string() : names.back(), entries_per_step);
    for (const std::string& name : names) {
      try {
        const auto record = find_array(catalog, name, reader.end_of_file());
        if (!record) continue;
        arrays.push_back(space_of(reader, *record));
        counted += arrays.back().data_bytes + arrays.back().index_bytes;
        if (counted > reader.end_of_file()) throw_contradiction(counted, reader.end_of_file());
      } catch (const error& failure) {
        if (failure.code() != errc::unsupported) throw;
        arrays.push_back({.name = name, .problem = failure});
      }
    }
  } while (!names.empty());
  return arrays;
}

// Counts the ranges of the map that the generation does not use, by what holds them. A range that
// several hold counts once.
void count_unused(space_report& report, const tree& map, std::uint64_t end_of_file,
                  const held_generations& held) {
  for (auto cursor = map.seek(space_key(space_section::unused, 0)); cursor.valid(); cursor.next()) {
    const auto record = decode_space_record(cursor.key(), cursor.short_value(), end_of_file);
    if (!record)
      throw error(errc::corrupt, "the space map is damaged", {"it holds an impossible entry"});
    const auto& [bytes, born, freed] = record->entry;
    if (held.read.overlaps(born, freed)) report.held_by_readers_bytes += bytes;
    else if (held.retained.overlaps(born, freed)) report.retained_bytes += bytes;
    else if (held.published.overlaps(born, freed)) report.previous_bytes += bytes;
    else report.free_bytes += bytes;
  }
}

// Counts the bytes that nothing else uses as those of arrays of later versions. Throws if bytes of
// the generation were counted twice, or if bytes are left over and there is no such array.
void count_unknown(space_report& report, std::uint64_t end_of_file) {
  std::uint64_t sum = report.metadata_bytes + report.held_by_readers_bytes + report.retained_bytes +
                      report.previous_bytes + report.free_bytes;
  for (const array_space& array : report.arrays) sum += array.data_bytes + array.index_bytes;
  const bool some_are_unknown =
      std::any_of(report.arrays.begin(), report.arrays.end(),
                  [](const array_space& array) { return array.problem.has_value(); });
  if (some_are_unknown && sum < end_of_file) report.unknown_bytes = end_of_file - sum;
  if (sum + report.unknown_bytes != end_of_file) throw_contradiction(sum, end_of_file);
}

}  // namespace

space_report space_use(const generation_view& view, const std::vector<generation_range>& pins) {
  const generation_view::state& base = view.shared();
  page_reader& reader = base.reader;
  const tree retained(tree_kind::retained, reader, base.root.retained);
  const tree map(tree_kind::space, reader, base.root.space);

  space_report report;
  report.generation = view.generation();
  report.arrays = space_of_arrays(reader, base.catalog);
  report.metadata_bytes = first_extent_offset + page_bytes + bytes_of(base.catalog) +
                          bytes_of(retained) + bytes_of(map);
  const slots both = read_slots(*base.file->data, base.file->id, base.file->path);
  count_unused(report, map, view.end_of_file(),
               protected_generations(both, pins, list_retained(retained)));
  for (const generation_range& pin : pins)
    if (pin.first < report.generation)
      report.oldest_read = std::min(pin.first, report.oldest_read.value_or(pin.first));

  count_unknown(report, view.end_of_file());
  report.file_bytes = size_bytes(*base.file->data, base.file->path);
  // Bytes after the generation's end belong to a transaction that runs, or that never committed.
  if (report.file_bytes > view.end_of_file())
    report.free_bytes += report.file_bytes - view.end_of_file();
  return report;
}

}  // namespace shale::format
