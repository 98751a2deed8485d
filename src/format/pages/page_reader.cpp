#include "format/pages/page_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/bytes/checksum.hpp"
#include "format/os/file_io.hpp"
#include "format/os/locks.hpp"
#include "shale/error.hpp"

namespace shale::format {

void page_reader::fail(const page_ref& ref, const std::string& problem) {
  throw error(errc::corrupt, "a tree page contradicts its place",
              {fmt::format("file {}, page at byte {}", *path_, ref.offset), problem});
}

void page_reader::require_checksum(const extent& range, const checksum128& stored,
                                   const checksum128& computed, const char* part) const {
  if (computed == stored) return;
  throw error(errc::corrupt, "checksum mismatch",
              {fmt::format("file {}, {} at byte {}", *path_, part, range.offset),
               "stored " + to_string(stored) + ", computed " + to_string(computed)});
}

void page_reader::require_inside(const extent& range, std::uint64_t alignment,
                                 const char* part) const {
  if (range.offset >= first_extent_offset && range.offset % alignment == 0 &&
      range.offset <= end_of_file_ && range.bytes <= end_of_file_ - range.offset)
    return;
  throw error(
      errc::corrupt, "a reference leads outside the file",
      {fmt::format("file {}, {} at byte {} with {} bytes", *path_, part, range.offset, range.bytes),
       fmt::format("the generation's file ends at byte {}", end_of_file_)});
}

void page_reader::read_verified(const extent& range, const checksum128& checksum, const char* part,
                                bytes_span into) {
  require_inside(range, page_bytes, part);
  read_exact(*file_, range.offset, into, *path_);
  require_checksum(range, checksum, checksum_metadata(into), part);
}

std::vector<std::byte> page_reader::load_verified(const extent& range, const checksum128& checksum,
                                                  const char* part) {
  require_inside(range, page_bytes, part);
  std::vector<std::byte> bytes(range.bytes);
  read_verified(range, checksum, part, bytes);
  return bytes;
}

void page_reader::scan(const extent& range, const checksum128& checksum, const char* part,
                       const std::function<void(bytes_view piece)>& body) {
  constexpr std::uint64_t piece_bytes_max = 1u << 20;
  require_inside(range, page_bytes, part);
  std::vector<std::byte> bytes(std::min(range.bytes, piece_bytes_max));
  metadata_checksum computed;
  for (std::uint64_t done = 0; done < range.bytes; done += bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(bytes.size(), range.bytes - done));
    read_exact(*file_, range.offset + done, bytes, *path_);
    computed.add(bytes);
    body(bytes);
  }
  require_checksum(range, checksum, computed.value(), part);
}

std::shared_ptr<const page> page_reader::load_page(const page_ref& ref) {
  if (auto cached = cache_->find(ref)) return cached;
  std::byte bytes[page_bytes];
  read_verified({ref.offset, page_bytes}, ref.checksum, "tree page", bytes);
  if (const auto problem = page::problem(bytes)) fail(ref, *problem);
  auto loaded = std::make_shared<const page>(bytes);
  if (loaded->offset() != ref.offset)
    fail(ref, fmt::format("it was written for byte {}", loaded->offset()));
  cache_->insert(ref, loaded);
  return loaded;
}

// A root page is not a tree page, so the cache does not hold it as one: a reference of a hostile tree
// could lead to it.
void page_reader::keep_written(const page_ref& ref, const page& written) {
  if (written.kind() != page_kind::root)
    return cache_->insert(ref, std::make_shared<page>(written));
  if (const auto fields = decode_root(written, written.generation(), ref.offset))
    cache_->insert_root(written.generation(), ref, *fields);
}

std::vector<std::byte> page_reader::load_overflow(const overflow_ref& ref) {
  if (ref.range.bytes > value_bytes_max)
    fail({ref.range.offset, {}}, fmt::format("a value of {} bytes", ref.range.bytes));
  return load_verified(ref.range, ref.checksum, "overflow extent");
}

root_fields page_reader::load_root(const superblock& fields) {
  const auto refuse = [&](const std::string& reason) {
    throw error(errc::corrupt, "the newest generation does not verify",
                {fmt::format("file {}, generation {}", *path_, fields.generation), reason,
                 "restore the file from a copy"});
  };
  if (fields.generation == 0 || fields.generation >= generations_end)
    refuse(fmt::format("a generation has a number from 1 to {}", generations_end - 1));
  if (fields.end_of_file < first_extent_offset || fields.end_of_file > file_bytes_max ||
      fields.root.bytes != page_bytes)
    refuse(fmt::format(
        "its superblock says that the file ends at byte {} and the root page has {} bytes",
        fields.end_of_file, fields.root.bytes));
  const std::uint64_t size = size_bytes(*file_, *path_);
  if (size < fields.end_of_file)
    refuse(fmt::format("the file has {} bytes, the generation needs {}: it was truncated", size,
                       fields.end_of_file));
  const page_ref root{fields.root.offset, fields.root_checksum};
  if (const auto cached = cache_->find_root(fields.generation, root)) return *cached;
  try {
    std::byte bytes[page_bytes];
    read_verified(fields.root, fields.root_checksum, "root page", bytes);
    const auto decoded = decode_root(page(bytes), fields.generation, fields.root.offset);
    if (!decoded) refuse("its root page does not have the form of a root page");
    cache_->insert_root(fields.generation, root, *decoded);
    return *decoded;
  } catch (error& failed) {
    if (failed.code() == errc::corrupt) failed.add_detail("restore the file from a copy");
    throw;
  }
}

}  // namespace shale::format
