#include "format/container_handle.hpp"

#include <fmt/format.h>

#include "format/bytes.hpp"
#include "format/checksum.hpp"
#include "format/container_file.hpp"
#include "format/file_io.hpp"
#include "format/header.hpp"
#include "format/pins.hpp"
#include "format/space.hpp"
#include "shale/error.hpp"

namespace shale::format {

// ---- pages ------------------------------------------------------------------------------------

std::shared_ptr<const page> page_cache::find(const page_ref& ref) {
  const std::lock_guard lock(mutex_);
  const auto found = by_ref_.find(ref);
  if (found == by_ref_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->content;
}

void page_cache::insert(const page_ref& ref, std::shared_ptr<const page> verified) {
  const std::lock_guard lock(mutex_);
  if (by_ref_.contains(ref)) return;  // another thread read it meanwhile
  recent_.push_front({ref, std::move(verified)});
  by_ref_.emplace(ref, recent_.begin());
  if (recent_.size() > pages_max) {
    by_ref_.erase(recent_.back().ref);
    recent_.pop_back();
  }
}

void page_reader::fail(const page_ref& ref, const std::string& problem) {
  throw error(errc::corrupt, "a tree page contradicts its place",
              {fmt::format("file {}, page at byte {}", handle_->path, ref.offset), problem});
}

void page_reader::require_checksum(const extent& where, const checksum128& stored,
                                   const checksum128& computed, const char* what) const {
  if (computed == stored) return;
  throw error(errc::corrupt, "checksum mismatch",
              {fmt::format("file {}, {} at byte {}", handle_->path, what, where.offset),
               "stored " + to_string(stored) + ", computed " + to_string(computed)});
}

void page_reader::require_inside(const extent& where, std::uint64_t alignment,
                                 const char* what) const {
  if (where.offset >= first_extent_offset && where.offset % alignment == 0 &&
      where.offset <= end_of_file_ && where.bytes <= end_of_file_ - where.offset)
    return;
  throw error(errc::corrupt, "a reference leads outside the file",
              {fmt::format("file {}, {} at byte {} with {} bytes", handle_->path, what,
                           where.offset, where.bytes),
               fmt::format("the generation's file ends at byte {}", end_of_file_)});
}

std::vector<std::byte> page_reader::load_verified(const extent& where, const checksum128& checksum,
                                                  const char* what) {
  require_inside(where, page_bytes, what);
  std::vector<std::byte> bytes(where.bytes);
  read_exact(*handle_->data, where.offset, bytes, handle_->path);
  require_checksum(where, checksum, checksum_metadata(bytes), what);
  return bytes;
}

void page_reader::scan(const extent& where, const checksum128& checksum, const char* what,
                       const std::function<void(bytes_view piece)>& body) {
  constexpr std::uint64_t piece_bytes_max = 1u << 20;
  require_inside(where, page_bytes, what);
  std::vector<std::byte> bytes(std::min(where.bytes, piece_bytes_max));
  metadata_checksum computed;
  for (std::uint64_t done = 0; done < where.bytes; done += bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(bytes.size(), where.bytes - done));
    read_exact(*handle_->data, where.offset + done, bytes, handle_->path);
    computed.add(bytes);
    body(bytes);
  }
  require_checksum(where, checksum, computed.value(), what);
}

std::shared_ptr<const page> page_reader::load_page(const page_ref& ref) {
  if (auto cached = cache_->find(ref)) return cached;
  const auto bytes = load_verified({ref.offset, page_bytes}, ref.checksum, "tree page");
  if (const auto problem = page::problem(bytes)) fail(ref, *problem);
  auto loaded = std::make_shared<const page>(bytes);
  if (loaded->offset() != ref.offset)
    fail(ref, fmt::format("it was written for byte {}", loaded->offset()));
  cache_->insert(ref, loaded);
  return loaded;
}

std::vector<std::byte> page_reader::load_overflow(const overflow_ref& ref) {
  if (ref.where.bytes > value_bytes_max)
    fail({ref.where.offset, {}}, fmt::format("a value of {} bytes", ref.where.bytes));
  return load_verified(ref.where, ref.checksum, "overflow extent");
}

root_fields page_reader::load_root(const superblock& fields) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::corrupt, "the newest generation does not verify",
                {fmt::format("file {}, generation {}", handle_->path, fields.generation), why,
                 "restore the file from a copy"});
  };
  if (fields.generation == 0 || fields.generation >= generations_end)
    refuse("its number is not possible");
  if (fields.end_of_file < first_extent_offset || fields.end_of_file > file_bytes_max ||
      fields.root.bytes != page_bytes)
    refuse("its superblock is not possible");
  const std::uint64_t size = size_bytes(*handle_->data, handle_->path);
  if (size < fields.end_of_file)
    refuse(fmt::format("the file has {} bytes, the generation needs {}: it was truncated", size,
                       fields.end_of_file));
  try {
    const auto bytes = load_verified(fields.root, fields.root_checksum, "root page");
    const auto decoded = decode_root(page(bytes), fields.generation, fields.root.offset);
    if (!decoded) refuse("its root page is not one");
    return *decoded;
  } catch (error& failed) {
    if (failed.code() == errc::corrupt) failed.add_detail("restore the file from a copy");
    throw;
  }
}

// ---- opening ----------------------------------------------------------------------------------

std::shared_ptr<container_handle> open_handle(file_system& files, const std::string& path,
                                              open_access access) {
  auto handle = std::make_shared<container_handle>();
  handle->path = path;
  handle->data = open_existing(files, path, access);
  handle->identity = identity_of(*handle->data, path);
  const std::uint64_t size = size_bytes(*handle->data, path);
  header_page head;
  if (size < head.size())
    throw error(
        errc::corrupt, "not a Shale container",
        {"file " + path, fmt::format("it has {} bytes, a header has {}", size, head.size())});
  read_exact(*handle->data, 0, head, path);
  handle->id = decode_header(head, path).id;
  if (size < first_extent_offset)
    throw error(errc::corrupt, "the container was truncated",
                {"file " + path, fmt::format("it has {} bytes, the fixed pages alone take {}", size,
                                             first_extent_offset)});
  return handle;
}

// ---- catalog and indexes ----------------------------------------------------------------------

std::optional<array_record> find_array(const tree& catalog, std::string_view name,
                                       std::uint64_t end_of_file) {
  if (name.empty() || name.size() > name_bytes_max) return std::nullopt;
  const auto stored = catalog.find(name);
  if (!stored) return std::nullopt;
  array_record record = with_context([&] { return fmt::format("array '{}'", name); },
                                     [&] { return decode_descriptor(*stored, end_of_file); });
  if (record.name != name)
    throw error(errc::corrupt, "an array is stored under another array's name",
                {fmt::format("'{}' under '{}'", record.name, name)});
  return record;
}

std::vector<std::string> list_arrays(const tree& catalog, std::string_view prefix,
                                     std::string_view after, std::size_t limit) {
  std::vector<std::string> names;
  if (limit == 0) return names;
  for (auto at = catalog.seek(std::max(prefix, after)); at.valid(); at.next()) {
    if (at.key().empty())
      throw error(errc::corrupt, "the catalog is damaged", {"it holds an array without a name"});
    if (at.key() == after) continue;
    if (!at.key().starts_with(prefix)) break;
    names.emplace_back(at.key());
    if (names.size() == limit) break;
  }
  return names;
}

std::string chunk_key(std::uint64_t number) {
  std::string key;
  append_ordered(key, number);
  return key;
}

std::array<std::byte, 32> encode_chunk_entry(const chunk_entry& entry) noexcept {
  std::array<std::byte, 32> value{};
  store(value.data(), entry.offset);
  store(value.data() + 8, entry.stored_bytes);
  store(value.data() + 16, entry.checksum);
  store(value.data() + 24, entry.flags);
  return value;
}

chunk_entry decode_chunk_entry(bytes_view value, const array_record& record, std::uint64_t number,
                               std::uint64_t end_of_file) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::corrupt, "a chunk's index entry is damaged",
                {fmt::format("array '{}', chunk {}", record.name, number), why});
  };
  if (value.size() != 32) refuse(fmt::format("it has {} bytes, not 32", value.size()));
  const chunk_entry entry{load<std::uint64_t>(value.data()), load<std::uint64_t>(value.data() + 8),
                          load<std::uint64_t>(value.data() + 16),
                          load<std::uint32_t>(value.data() + 24)};
  if (load<std::uint32_t>(value.data() + 28) != 0) refuse("its reserved bytes are set");
  if (entry.stored_bytes == 0 || entry.stored_bytes > chunk_bytes(record))
    refuse(
        fmt::format("{} stored bytes, the chunk has {}", entry.stored_bytes, chunk_bytes(record)));
  // A zstd block takes 4 bytes at least and holds 128 KiB at most. Who reads makes room for a whole
  // chunk, so this keeps a few bytes from asking for a GiB.
  constexpr std::uint64_t largest_ratio = 32768;
  if (chunk_bytes(record) / largest_ratio > entry.stored_bytes)
    refuse(fmt::format("{} stored bytes cannot hold a chunk of {}", entry.stored_bytes,
                       chunk_bytes(record)));
  if (entry.offset < first_extent_offset || entry.offset % chunk_alignment != 0 ||
      entry.offset > end_of_file || chunk_space(entry.stored_bytes) > end_of_file - entry.offset)
    refuse(fmt::format("byte {} with {} bytes is not inside the file's {} bytes", entry.offset,
                       entry.stored_bytes, end_of_file));
  return entry;
}

std::optional<chunk_entry> find_chunk(const tree& index, const array_record& record,
                                      std::uint64_t number, std::uint64_t end_of_file) {
  const auto value = index.find(chunk_key(number));
  if (!value) return std::nullopt;
  return decode_chunk_entry(*value, record, number, end_of_file);
}

std::vector<numbered_chunk> list_chunks(const tree& index, const array_record& record,
                                        std::uint64_t first, std::size_t limit,
                                        std::uint64_t end_of_file) {
  std::vector<numbered_chunk> chunks;
  if (limit == 0) return chunks;
  for (auto at = index.seek(chunk_key(first)); at.valid(); at.next()) {
    if (at.key().size() != 8)
      throw error(errc::corrupt, "a chunk index is damaged",
                  {fmt::format("array '{}': a key of {} bytes", record.name, at.key().size())});
    const std::uint64_t number = load_ordered(at.key(), 0);
    chunks.push_back({number, decode_chunk_entry(at.short_value(), record, number, end_of_file)});
    if (chunks.size() == limit) break;
  }
  return chunks;
}

void scan_dense_checksums(page_reader& reader, const array_record& record,
                          const std::function<void(std::uint64_t segment, std::uint64_t)>& body) {
  const dense_layout& dense = record.dense();
  if (dense.checksums.bytes == 0) return;
  std::uint64_t segment = 0;
  reader.scan(dense.checksums, dense.checksums_checksum, "segment checksums",
              [&](bytes_view piece) {
                for (std::size_t at = 0; at < piece.size(); at += 8)
                  body(segment++, load<std::uint64_t>(piece.data() + at));
              });
}

void read_chunk(container_handle& handle, const chunk_entry& entry, bytes_span into) {
  if (into.size() != entry.stored_bytes)
    throw error(
        errc::invalid_argument, "a chunk is read whole",
        {fmt::format("it has {} stored bytes, got room for {}", entry.stored_bytes, into.size())});
  read_exact(*handle.data, entry.offset, into, handle.path);
  const std::uint64_t computed = checksum_data(into);
  if (computed != entry.checksum)
    throw error(errc::corrupt, "checksum mismatch",
                {fmt::format("file {}, chunk at byte {}", handle.path, entry.offset),
                 fmt::format("stored {:016x}, computed {:016x}", entry.checksum, computed)});
}

}  // namespace shale::format
