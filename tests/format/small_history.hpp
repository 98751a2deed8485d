// A short history of a container, with an oracle: the content of each generation in plain maps,
// which share no code with the format.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "format/bytes/checksum.hpp"
#include "format/bytes/file_layout.hpp"
#include "format/catalog/attributes.hpp"
#include "format/container/container_file.hpp"
#include "format/container/verify.hpp"
#include "shale/error.hpp"

namespace shale::test {

struct plain_array {
  std::vector<std::byte> dense;                            // a dense array's bytes
  std::map<std::uint64_t, std::vector<std::byte>> chunks;  // a chunked one's, decoded
  std::map<std::string, std::string> notes;
  index_t length = 0;  // of a chunked array

  bool operator==(const plain_array&) const = default;
};

/// The whole content of a generation.
using plain_state = std::map<std::string, plain_array>;

inline std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    made[i] = static_cast<std::byte>(i % 7 == 0 ? seed * 31 + i / 97 : seed);
  return made;
}

inline constexpr std::size_t chunk_elements = 64;  // of int32: 256 bytes

inline constexpr index_t chunked_length = 32 * static_cast<index_t>(chunk_elements);

inline format::array_record chunked_record(const std::string& name) {
  format::array_record record;
  record.name = name;
  record.dtype = dtype::int32;
  record.shape = {chunked_length};
  format::chunked_layout layout;
  layout.chunk_shape = {static_cast<index_t>(chunk_elements)};
  layout.grid_capacity = {32};
  layout.stages = {{format::stage_kind::byte_shuffle, 0}, {format::stage_kind::zstd, 1}};
  record.layout = layout;
  record.fill_value.resize(4);
  return record;
}

/// Stores a chunk in the order of the array floor: space, bytes, then the entry in the index.
inline void store_chunk(format::transaction& in, const std::string& name, std::uint64_t number,
                        const format::encoded_chunk& chunk) {
  format::chunk_entry entry = format::entry_of(chunk);
  entry.offset = in.allocate_chunk(entry.stored_bytes).offset;
  in.write(entry.offset, chunk.stored);
  in.set_chunk(name, number, entry);
}

/// Makes the same changes in a transaction and in a plain state.
class storyteller {
 public:
  storyteller(format::transaction& in, plain_state& told) : change_(in), told_(told) {}

  void create_chunked(const std::string& name) {
    change_.put(chunked_record(name));
    told_[name] = {{}, {}, {}, chunked_length};
  }

  /// Gives a chunked array another length. The chunk that the end cuts through is stored again, with
  /// zeros beyond the end.
  void resize(const std::string& name, index_t length) {
    plain_array& told = told_[name];
    const auto first = static_cast<std::uint64_t>(length) / chunk_elements;  // that may be cut
    const std::size_t kept_bytes = static_cast<std::size_t>(length) % chunk_elements * 4;
    if (length < told.length) {
      told.chunks.erase(told.chunks.lower_bound(first + (kept_bytes == 0 ? 0 : 1)),
                        told.chunks.end());
      const auto cut = told.chunks.find(first);
      if (cut != told.chunks.end())
        std::fill(cut->second.begin() + static_cast<std::ptrdiff_t>(kept_bytes), cut->second.end(),
                  std::byte{0});
    }
    told.length = length;
    std::vector<format::numbered_chunk> replaced;
    for (const auto& [number, entry] : change_.chunks_cut_by(name, {length}).across) {
      const format::codec coder(chunked_record(name).chunked().stages, dtype::int32);
      const auto chunk =
          coder.encode(told.chunks.at(number), format::codec_workspace::of_this_thread());
      format::chunk_entry made = format::entry_of(chunk);
      made.offset = change_.allocate_chunk(made.stored_bytes).offset;
      change_.write(made.offset, chunk.stored);
      replaced.push_back({number, made});
    }
    change_.resize(name, {length}, replaced);
  }

  void chunk(const std::string& name, std::uint64_t number, unsigned seed) {
    const auto bytes = pattern(chunk_elements * 4, seed);
    const format::codec coder(chunked_record(name).chunked().stages, dtype::int32);
    store_chunk(change_, name, number,
                coder.encode(bytes, format::codec_workspace::of_this_thread()));
    told_[name].chunks[number] = bytes;
  }

  void erase_chunk(const std::string& name, std::uint64_t number) {
    change_.erase_chunk(name, number);
    told_[name].chunks.erase(number);
  }

  void dense(const std::string& name, std::size_t bytes, unsigned seed) {
    const auto content = pattern(bytes, seed);
    format::array_record record;
    record.name = name;
    record.dtype = dtype::uint8;
    record.shape = {static_cast<index_t>(bytes)};
    record.fill_value.resize(1);
    format::dense_layout layout;
    const format::extent range = change_.allocate(bytes);
    fill(range, content, seed);
    layout.extents = {range};
    add_checksum(layout, content);
    record.layout = layout;
    change_.put(record);
    told_[name] = {content, {}, {}, 0};
  }

  /// Stores one page of a dense array in new space, and keeps the others where they are.
  void dense_page(const std::string& name, std::size_t page, unsigned seed) {
    std::vector<std::byte>& content = told_[name].dense;
    const std::size_t first = page * format::page_bytes;
    const auto fresh =
        pattern(std::min<std::size_t>(format::page_bytes, content.size() - first), seed);
    std::copy(fresh.begin(), fresh.end(), content.begin() + static_cast<std::ptrdiff_t>(first));
    auto record = *change_.find(name);
    const format::extent range = change_.allocate(fresh.size());
    fill(range, fresh, seed);
    std::vector<format::extent> pages;
    std::uint64_t position = 0;
    for (const format::extent& piece : record.dense().extents)
      for (std::uint64_t at = 0; at < piece.bytes && position < content.size();
           at += format::page_bytes) {
        const std::uint64_t bytes = std::min(format::page_bytes, content.size() - position);
        pages.push_back(position == first ? range : format::extent{piece.offset + at, bytes});
        position += bytes;
      }
    record.dense().extents = pages;
    add_checksum(record.dense(), content);
    change_.put(record);
  }

  void note(const std::string& name, const std::string& key, const std::string& value) {
    auto record = *change_.find(name);
    format::set_attribute(record, key, value);
    change_.put(record);
    told_[name].notes[key] = value;
  }

  void erase(const std::string& name) {
    change_.erase(name);
    told_.erase(name);
  }

  void rename(const std::string& from, const std::string& to) {
    change_.rename(from, to);
    auto moved = told_.extract(from);
    moved.key() = to;
    told_.insert(std::move(moved));
  }

 private:
  // There is one checksum per MiB; these arrays are shorter, so they have one.
  void add_checksum(format::dense_layout& layout, const std::vector<std::byte>& content) {
    const std::uint64_t sum = format::checksum_data(content);
    layout.checksums = change_.allocate(8);
    const auto sum_bytes = std::as_bytes(std::span(&sum, 1));
    change_.write(layout.checksums.offset, sum_bytes);
    layout.checksums_checksum = format::checksum_metadata(sum_bytes);
  }

  // Every other array is written through a mapping, the others by `write`.
  void fill(const format::extent& range, const std::vector<std::byte>& content, unsigned seed) {
    if (seed % 2 == 0) return change_.write(range.offset, content);
    change_.prepare_mapped_write(range);
    // An extent need not begin at a page of the system, whose pages may be larger.
    const std::size_t before = range.offset % static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const mapped =
        ::mmap(nullptr, before + content.size(), PROT_READ | PROT_WRITE, MAP_SHARED,
               change_.descriptor(), static_cast<off_t>(range.offset - before));
    if (mapped == MAP_FAILED) throw error(errc::io, "no mapping");
    std::memcpy(static_cast<std::byte*>(mapped) + before, content.data(), content.size());
    ::munmap(mapped, before + content.size());
  }

  format::transaction& change_;
  plain_state& told_;
};

/// The number of transactions of the history.
inline constexpr int history_steps = 7;

/// Makes the changes of transaction `step`, which counts from 0.
inline void tell(int step, storyteller&& story) {
  switch (step) {
    case 0:
      story.create_chunked("a");
      for (unsigned i = 0; i < 3; ++i) story.chunk("a", i * 5, i);
      story.dense("d", 5000, 9);
      break;
    case 1:
      story.chunk("a", 5, 77);
      story.chunk("a", 20, 4);
      story.note("a", "history", std::string(6000, 'h'));  // longer than a page
      break;
    case 2:
      story.erase("d");
      story.dense("e", 12'000, 3);
      story.rename("a", "b/a");
      break;
    case 3:
      story.chunk("b/a", 0, 5);
      story.erase_chunk("b/a", 10);
      story.resize("b/a", 350);  // inside chunk 5
      story.note("b/a", "history", "short again");
      break;
    case 4:  // more arrays than fit in a page of the catalog
      for (int i = 0; i < 24; ++i) story.create_chunked("many/" + std::to_string(i));
      story.chunk("many/7", 31, 1);
      break;
    case 5:
      for (int i = 0; i < 24; i += 2) story.erase("many/" + std::to_string(i));
      story.dense("e", 300, 4);
      break;
    default:
      story.resize("many/7", 100'000);
      story.chunk("many/7", 1000, 2);
      story.resize("b/a", 500);
      story.chunk("b/a", 6, 6);
      break;
  }
}

/// Commits that transaction to the container and updates `state`. Returns the generation.
inline std::uint64_t commit_step(format::container_file& container, int step, plain_state& state) {
  format::transaction change = container.begin(std::chrono::milliseconds{0});
  tell(step, {change, state});
  return change.commit();
}

/// Reads the whole content of a generation.
/// Throws   like the functions that read
inline plain_state observe(const format::generation_view& view) {
  plain_state seen;
  for (const std::string& name : view.list()) {
    const format::array_record record = view.find(name).value();
    plain_array& array = seen[name];
    for (const auto& [key, value] : record.attributes) array.notes[key] = value;
    if (record.is_dense()) {
      for (const format::extent& piece : record.dense().extents) {
        const std::size_t before = array.dense.size();
        array.dense.resize(before + piece.bytes);
        view.read(piece.offset, std::span(array.dense).subspan(before));
      }
      array.dense.resize(format::array_bytes(record));
      if (view.dense_checksums(record) !=
          std::vector<std::uint64_t>{format::checksum_data(array.dense)})
        throw error(errc::corrupt, "dense checksum");
      continue;
    }
    array.length = record.shape[0];
    const format::codec coder(record.chunked().stages, record.dtype);
    auto& workspace = format::codec_workspace::of_this_thread();
    for (const auto& [number, entry] : view.chunks(record)) {
      const auto stored = workspace.staging(entry.stored_bytes);
      view.read_chunk(entry, stored);
      auto& chunk = array.chunks[number];
      chunk.resize(format::chunk_bytes(record));
      coder.decode(stored, entry.flags, chunk, workspace);
    }
  }
  return seen;
}

/// Verifies a generation and returns the findings as one text; "" if there are none. Also checks
/// that the bytes of the report add up.
inline std::string unsound(const format::generation_view& view) {
  const verification report = format::verify(view);
  std::string text;
  for (const auto& finding : report.findings) text += finding.text + "\n";
  if (report.live_bytes + report.freed_bytes + report.free_bytes != report.file_bytes)
    text += "live + freed + free is not the file\n";
  return text;
}

}  // namespace shale::test
