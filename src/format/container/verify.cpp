#include "format/container/verify.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"
#include "format/bytes/byte_order.hpp"
#include "format/bytes/checksum.hpp"
#include "format/catalog/catalog.hpp"
#include "format/catalog/dense_checksums.hpp"
#include "format/chunks/chunk_index.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "format/generations/generation_state.hpp"
#include "format/generations/retained_generations.hpp"
#include "format/generations/superblock_slots.hpp"
#include "format/os/file_io.hpp"
#include "format/pages/header.hpp"
#include "format/space/space_map.hpp"

namespace shale::format {
namespace {

struct used_range {
  std::uint64_t first;
  std::uint64_t end;
};

// The number of chunks that are listed at a time.
constexpr std::size_t chunks_per_step = 4096;

// The bytes of a chunk or segment that are read at a time.
constexpr std::size_t read_bytes_max = 1u << 20;

// The ranges in order, with those that touch or overlap as one.
std::vector<used_range> joined(std::vector<used_range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](auto a, auto b) { return a.first < b.first; });
  std::vector<used_range> result;
  for (const auto& range : ranges) {
    if (!result.empty() && range.first <= result.back().end)
      result.back().end = std::max(result.back().end, range.end);
    else result.push_back(range);
  }
  return result;
}

std::string first_line(const error& failed) {
  std::string text = failed.what();
  std::replace(text.begin(), text.end(), '\n', ';');
  return text;
}

}  // namespace

struct verifier::state {
  explicit state(generation_view checked)
      : view(std::move(checked)),
        base(view.shared()),
        reader(*base.file->data, base.file->path, pages, base.fields.end_of_file),
        catalog(tree_kind::catalog, reader, base.root.catalog) {}

  // Runs one part of the check. Damage that stops it becomes a finding.
  template <class Body>
  void attempt(const std::string& part, Body&& body) {
    try {
      body();
    } catch (const error& failed) {
      // Other errors, like exhausted memory, say nothing about the file.
      const errc code = failed.code();
      if (code != errc::corrupt && code != errc::io && code != errc::unsupported) throw;
      report.findings.push_back(
          {code == errc::corrupt ? errc::corrupt : errc::io, part + ": " + first_line(failed)});
    }
  }

  void find(std::string text) { report.findings.push_back({errc::corrupt, std::move(text)}); }

  // Records that a range is in use, before the elements there are read. In a sound file no two
  // things share a byte, so all of them together are no longer than the file. A hostile file could
  // make its few bytes be read again and again, so the check of the arrays ends where they exceed
  // the file.
  void use(std::uint64_t offset, std::uint64_t space) {
    used.push_back({offset, offset + space});
    used_bytes += space;
    if (exceeds_file || used_bytes <= view.end_of_file()) return;
    exceeds_file = true;
    complete = false;
    throw error(errc::corrupt, "from here on more bytes are in use than the generation has",
                {fmt::format("it ends at byte {}", view.end_of_file()),
                 "some things share bytes; what comes after this place was not checked"});
  }

  void use_page(const extent& range) {
    ++report.pages;
    use(range.offset, page_space(range.bytes));
  }

  void check_dense(const array_record& record, const std::function<void(verify_task&&)>& on_task);
  void check_chunked(const array_record& record, const std::function<void(verify_task&&)>& on_task);
  void check_array(const std::string& name, const std::function<void(verify_task&&)>& on_task);
  void check_superblocks();
  void check_catalog(const std::function<void(verify_task&&)>& on_task);
  void check_space();
  void find_shared_bytes();
  void compare(const std::vector<used_range>& live);

  generation_view view;
  const generation_view::state& base;
  page_cache pages;  // of its own, so that every page is read from the file, not from memory
  page_reader reader;
  tree catalog;
  verification report;
  std::vector<used_range> used;
  std::uint64_t used_bytes = 0;
  bool exceeds_file = false;  // `used_bytes`
  bool complete = true;  // false if some part could not be read: the partition is not judged then
};

void verifier::state::check_dense(const array_record& record,
                                  const std::function<void(verify_task&&)>& on_task) {
  const dense_layout& dense = record.dense();
  for (const extent& piece : dense.extents) use(piece.offset, page_space(piece.bytes));
  const std::uint64_t bytes = array_bytes(record);
  report.data_bytes += bytes;
  if (dense.checksums.bytes == 0) return;
  use(dense.checksums.offset, page_space(dense.checksums.bytes));
  // The checksums are read once before the data. If they are damaged, this throws, and their damage
  // is not reported as damage of the data.
  scan_dense_checksums(reader, record, [](std::uint64_t, std::uint64_t) {});
  std::size_t piece = 0;
  std::uint64_t inside = 0;  // bytes of the current extent that earlier segments took
  scan_dense_checksums(reader, record, [&](std::uint64_t segment, std::uint64_t checksum) {
    verify_task task{record.name, segment, true, {}, checksum};
    std::uint64_t missing = std::min(dense_segment_bytes, bytes - segment * dense_segment_bytes);
    while (missing > 0) {
      const extent& piece_range = dense.extents[piece];
      const std::uint64_t part = std::min(missing, piece_range.bytes - inside);
      task.pieces.push_back({piece_range.offset + inside, part});
      inside += part;
      missing -= part;
      if (inside == piece_range.bytes) {
        ++piece;
        inside = 0;
      }
    }
    on_task(std::move(task));
  });
}

void verifier::state::check_chunked(const array_record& record,
                                    const std::function<void(verify_task&&)>& on_task) {
  const chunked_layout& chunked = record.chunked();
  const tree index(tree_kind::chunks, reader, chunked.index);
  index.for_each_extent([&](const extent& range) { use_page(range); });
  std::uint64_t count = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t next = 0;
  for (;;) {
    const auto chunks = list_chunks(index, record, next, chunks_per_step, reader.end_of_file());
    for (const auto& [number, entry] : chunks) {
      if (!is_in_grid(record, number))
        find(fmt::format("array '{}': chunk {} is outside the grid", record.name, number));
      use(entry.offset, chunk_space(entry.stored_bytes));
      ++count;
      stored_bytes += entry.stored_bytes;
      on_task({record.name, number, false, {{entry.offset, entry.stored_bytes}}, entry.checksum});
    }
    if (chunks.size() < chunks_per_step || chunks.back().number == UINT64_MAX) break;
    next = chunks.back().number + 1;
  }
  report.chunks += count;
  report.data_bytes += stored_bytes;
  if (count != chunked.chunk_count || stored_bytes != chunked.stored_bytes)
    find(
        fmt::format("array '{}': its index holds {} chunks of {} bytes, its descriptor says {} of "
                    "{}",
                    record.name, count, stored_bytes, chunked.chunk_count, chunked.stored_bytes));
}

void verifier::state::check_array(const std::string& name,
                                  const std::function<void(verify_task&&)>& on_task) {
  try {
    const auto record = find_array(catalog, name, reader.end_of_file());
    if (!record) throw error(errc::corrupt, "it is listed, but cannot be found");
    if (record->is_dense()) check_dense(*record, on_task);
    else check_chunked(*record, on_task);
  } catch (const error& failed) {
    if (failed.code() != errc::unsupported) {
      complete = false;
      throw;
    }
    report.unchecked.push_back({name, failed});
  } catch (...) {
    complete = false;
    throw;
  }
}

// An invalid superblock is not damage by itself: a power cut may have torn it.
void verifier::state::check_superblocks() {
  attempt("superblocks", [&] {
    if (const auto lost = find_lost_commit(*base.file->data, base.file->id, base.file->path))
      find(lost->text() + ": restore the file from a copy, or copy generation " +
           std::to_string(lost->newest) + " with `shale convert --salvage`");
  });
}

void verifier::state::check_catalog(const std::function<void(verify_task&&)>& on_task) {
  attempt("catalog", [&] {
    try {
      catalog.for_each_extent([&](const extent& range) { use_page(range); });
    } catch (...) {
      complete = false;
      throw;
    }
  });
  // Each array is looked up by its name, so that a damaged page hides only the arrays below it.
  std::string after;
  std::vector<std::string> names;
  do {
    names.clear();
    if (!exceeds_file) attempt("catalog", [&] { names = list_arrays(catalog, {}, after, 1024); });
    for (const std::string& name : names) {
      if (exceeds_file) break;
      ++report.arrays;
      attempt("array " + shale::detail::in_quotes(name), [&] { check_array(name, on_task); });
      after = name;
    }
  } while (!names.empty());
  if (complete && report.arrays != view.array_count())
    find(fmt::format("the catalog holds {} arrays, the root page says {}", report.arrays,
                     view.array_count()));
}

// Both sections of the map together must cover the file after the fixed pages exactly once
// (space.1). The live section must be equal to the ranges that the walk has found in use.
void verifier::state::check_space() {
  const tree map(tree_kind::space, reader, base.root.space);
  map.for_each_extent([&](const extent& range) { use_page(range); });
  std::vector<used_range> all;
  std::vector<used_range> live;
  for (auto cursor = map.seek({}); cursor.valid(); cursor.next()) {
    const auto record = decode_space_record(cursor.key(), cursor.short_value(), view.end_of_file());
    if (!record) {
      find("the space map holds an entry that is not possible");
      continue;
    }
    const std::uint64_t end = record->offset + record->entry.bytes;
    all.push_back({record->offset, end});
    if (record->section == space_section::live) {
      live.push_back({record->offset, end});
      report.live_bytes += record->entry.bytes;
      if (record->entry.born > view.generation())
        find(fmt::format("bytes {} to {} are live from generation {} on", record->offset, end,
                         record->entry.born));
    } else if (record->entry.is_free()) {
      report.free_bytes += record->entry.bytes;
    } else {
      report.freed_bytes += record->entry.bytes;
    }
  }
  std::sort(all.begin(), all.end(), [](auto a, auto b) { return a.first < b.first; });
  std::uint64_t covered = first_extent_offset;
  for (const auto& [first, end] : all) {
    if (first > covered)
      find(fmt::format("the space map says nothing about bytes {} to {}", covered, first));
    if (first < covered)
      find(fmt::format("the space map counts bytes {} to {} twice", first, std::min(covered, end)));
    covered = std::max(covered, end);
  }
  if (covered != view.end_of_file())
    find(fmt::format("the space map ends at byte {}, the generation at {}", covered,
                     view.end_of_file()));
  if (complete) compare(live);
}

void verifier::state::find_shared_bytes() {
  std::sort(used.begin(), used.end(), [](auto a, auto b) { return a.first < b.first; });
  for (std::size_t i = 1; i < used.size(); ++i)
    if (used[i].first < used[i - 1].end)
      find(fmt::format("two things use bytes {} to {}", used[i].first,
                       std::min(used[i].end, used[i - 1].end)));
}

// Compares the ranges that the walk found in use with the live ranges of the map. Arrays that could
// not be checked use live ranges that nobody knows of.
void verifier::state::compare(const std::vector<used_range>& live_ranges) {
  const std::vector<used_range> known = joined(used);
  const std::vector<used_range> live = joined(live_ranges);
  // Walks both lists side by side over the points where either changes.
  std::size_t u = 0;
  std::size_t l = 0;
  std::uint64_t offset = 0;
  while (u < known.size() || l < live.size()) {
    const bool in_use = u < known.size() && offset >= known[u].first;
    const bool is_live = l < live.size() && offset >= live[l].first;
    std::uint64_t next = UINT64_MAX;
    if (u < known.size()) next = std::min(next, in_use ? known[u].end : known[u].first);
    if (l < live.size()) next = std::min(next, is_live ? live[l].end : live[l].first);
    if (in_use && !is_live)
      find(fmt::format("bytes {} to {} are used, but not live in the space map", offset, next));
    if (!in_use && is_live && report.unchecked.empty())
      find(fmt::format("bytes {} to {} are live in the space map, but nothing uses them", offset,
                       next));
    offset = next;
    if (u < known.size() && offset >= known[u].end) ++u;
    if (l < live.size() && offset >= live[l].end) ++l;
  }
}

verifier::verifier(generation_view view) : state_(std::make_unique<state>(std::move(view))) {}
verifier::verifier(verifier&&) noexcept = default;
verifier& verifier::operator=(verifier&&) noexcept = default;
verifier::~verifier() = default;

void verifier::check_metadata(const std::function<void(verify_task&&)>& on_task) {
  state& self = *state_;
  const auto& base = self.base;
  self.report.generation = self.view.generation();
  self.use_page(base.fields.root);
  // The root was verified when the view was made, maybe long ago: read it again.
  self.attempt("root page", [&] { (void)self.reader.load_root(base.fields); });
  self.attempt("retained generations", [&] {
    const tree retained(tree_kind::retained, self.reader, base.root.retained);
    retained.for_each_extent([&](const extent& range) { self.use_page(range); });
    (void)list_retained(retained);
  });
  self.check_superblocks();
  self.check_catalog(on_task);
  self.attempt("space map", [&] { self.check_space(); });
  self.find_shared_bytes();
  self.report.live_bytes += first_extent_offset;
  self.attempt("file", [&] {
    self.report.file_bytes = size_bytes(*base.file->data, base.file->path);
    // The bytes after the generation's end were left by transactions that never committed.
    if (self.report.file_bytes > self.view.end_of_file())
      self.report.free_bytes += self.report.file_bytes - self.view.end_of_file();
  });
}

std::optional<finding> verifier::check(const verify_task& task,
                                       std::vector<std::byte>& buffer) const {
  const auto say = [&](errc code, const std::string& reason) {
    return finding{code, fmt::format("array '{}', {} {} at byte {}: {}", task.array,
                                     task.is_segment ? "segment" : "chunk", task.number,
                                     task.pieces.front().offset, reason)};
  };
  data_checksum sum;
  buffer.resize(read_bytes_max);
  for (const extent& piece : task.pieces) {
    for (std::uint64_t done = 0; done < piece.bytes;) {
      const auto part =
          bytes_span(buffer).first(std::min<std::uint64_t>(read_bytes_max, piece.bytes - done));
      try {
        state_->view.read(piece.offset + done, part);
      } catch (const error& failed) {
        return say(errc::io, first_line(failed));
      }
      sum.add(part);
      done += part.size();
    }
  }
  const std::uint64_t computed = sum.value();
  if (computed == task.checksum) return std::nullopt;
  return say(errc::corrupt,
             fmt::format("stored checksum {:016x}, computed {:016x}", task.checksum, computed));
}

void verifier::add(finding&& found) { state_->report.findings.push_back(std::move(found)); }

verification verifier::finish() { return std::move(state_->report); }

verification verify(const generation_view& view) {
  verifier work(view);
  std::vector<std::byte> buffer;
  work.check_metadata([&](verify_task&& task) {
    if (auto found = work.check(task, buffer)) work.add(std::move(*found));
  });
  return work.finish();
}

}  // namespace shale::format
