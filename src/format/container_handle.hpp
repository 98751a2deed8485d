// One file behind a container's name: the description that bytes are read and written through, and
// the verified pages that were read from it. Views and transactions share it, and keep it when a
// compacted file takes the name.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/descriptor.hpp"
#include "format/file_system.hpp"
#include "format/root_page.hpp"
#include "format/superblock.hpp"
#include "format/tree.hpp"
#include "format/types.hpp"

namespace shale::format {

/// Verified pages by reference. A reference names one content for ever (it holds the checksum), so
/// pages never go stale.
/// Threads  safe
class page_cache {
 public:
  std::shared_ptr<const page> find(const page_ref& ref);
  void insert(const page_ref& ref, std::shared_ptr<const page> verified);

 private:
  static constexpr std::size_t pages_max = 2048;  // 8 MiB

  struct entry {
    page_ref ref;
    std::shared_ptr<const page> content;
  };
  struct hash {
    std::size_t operator()(const page_ref& ref) const noexcept {
      return static_cast<std::size_t>(ref.checksum.low ^ ref.offset);
    }
  };

  std::mutex mutex_;
  std::list<entry> recent_;  // most recently used first
  std::unordered_map<page_ref, std::list<entry>::iterator, hash> by_ref_;
};

struct container_handle {
  std::string path;
  std::unique_ptr<open_file> data;  // holds no lock, ever: mappings keep descriptions alive
  file_identity identity;
  uuid id;
  page_cache pages;
};

/// Opens what the name leads to and checks the header.
/// Throws   not_found, access_denied, corrupt, unsupported, io
std::shared_ptr<container_handle> open_handle(file_system& files, const std::string& path,
                                              open_access access);

/// Reads pages of generations whose file ends at a given byte; through `cache` (which must outlive
/// it), or else through the handle's.
/// Threads  safe
class page_reader final : public page_source {
 public:
  page_reader(std::shared_ptr<container_handle> handle, std::uint64_t end_of_file,
              page_cache* cache = nullptr) noexcept
      : handle_(std::move(handle)),
        cache_(cache != nullptr ? cache : &handle_->pages),
        end_of_file_(end_of_file) {}

  std::shared_ptr<const page> load_page(const page_ref& ref) override;
  std::vector<std::byte> load_overflow(const overflow_ref& ref) override;
  [[noreturn]] void fail(const page_ref& ref, const std::string& problem) override;

  /// The root page behind a superblock. Throws corrupt, io.
  root_fields load_root(const superblock& fields);

  /// The bytes, if their checksum is right. Throws corrupt, io.
  std::vector<std::byte> load_verified(const extent& where, const checksum128& checksum,
                                       const char* what);

  /// Reads the bytes a piece at a time, so that what a file says of their number asks for no memory.
  /// Whether their checksum is right shows in the end: what `body` made of them does not count
  /// before. Throws corrupt, io.
  void scan(const extent& where, const checksum128& checksum, const char* what,
            const std::function<void(bytes_view piece)>& body);

  /// References must lead to bytes before this.
  std::uint64_t end_of_file() const noexcept { return end_of_file_; }

  /// For a transaction, which reads back what it wrote itself. Not safe beside other calls.
  void extend(std::uint64_t end_of_file) noexcept { end_of_file_ = end_of_file; }
  container_handle& handle() const noexcept { return *handle_; }

 private:
  void require_checksum(const extent& where, const checksum128& stored, const checksum128& computed,
                        const char* what) const;
  void require_inside(const extent& where, std::uint64_t alignment, const char* what) const;

  std::shared_ptr<container_handle> handle_;
  page_cache* cache_;
  std::uint64_t end_of_file_;
};

// ---- what views and transactions both do ------------------------------------------------------

/// Throws   corrupt if the catalog stores another array under the name
std::optional<array_record> find_array(const tree& catalog, std::string_view name,
                                       std::uint64_t end_of_file);

std::vector<std::string> list_arrays(const tree& catalog, std::string_view prefix,
                                     std::string_view after, std::size_t limit);

/// An index entry's stored form.
std::array<std::byte, 32> encode_chunk_entry(const chunk_entry& entry) noexcept;

/// Throws   corrupt unless the entry can be one of the array
chunk_entry decode_chunk_entry(bytes_view value, const array_record& record, std::uint64_t number,
                               std::uint64_t end_of_file);

std::string chunk_key(std::uint64_t number);

std::optional<chunk_entry> find_chunk(const tree& index, const array_record& record,
                                      std::uint64_t number, std::uint64_t end_of_file);

/// A page of chunks; see generation_view::chunks.
struct numbered_chunk;
std::vector<numbered_chunk> list_chunks(const tree& index, const array_record& record,
                                        std::uint64_t first, std::size_t limit,
                                        std::uint64_t end_of_file);

/// Calls `body` for each of a dense array's segment checksums, which lie in the file one after the
/// other. See page_reader::scan.
void scan_dense_checksums(page_reader& reader, const array_record& record,
                          const std::function<void(std::uint64_t segment, std::uint64_t)>& body);

/// Reads a chunk's stored bytes and verifies them. Throws corrupt, io.
void read_chunk(container_handle& handle, const chunk_entry& entry, bytes_span into);

}  // namespace shale::format
