// A .shale file as a sequence of generations: what the array floor stands on.
//
//   file             the open container; makes the other two
//   generation_view  one generation, immutable, pinned for as long as a copy lives
//   transaction      the next generation, by the one writer
//
// This floor starts no thread and knows no tensor. It hands out extents and keeps the books; bulk
// bytes are moved by the floor above, through `read` and `write` here or through mappings that it
// makes of `descriptor()`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/codec.hpp"
#include "format/descriptor.hpp"
#include "format/file_system.hpp"
#include "format/types.hpp"

namespace shale::format {

using patience = std::chrono::milliseconds;

/// Dense extents of at least this many bytes start at a multiple of 2 MiB, so that they can be
/// mapped with huge pages; smaller ones, and everything else that owns whole pages, at 4 KiB.
inline constexpr std::uint64_t large_extent_bytes = 16u << 20;

/// What the start of a dense extent of `bytes` is a multiple of. All extents of an array but its
/// last must also be a multiple of it long.
constexpr std::uint64_t dense_alignment(std::uint64_t bytes) noexcept {
  return bytes >= large_extent_bytes ? 2u << 20 : 4096;
}

/// A chunk of an array and its number.
struct numbered_chunk {
  std::uint64_t number = 0;
  chunk_entry entry;
};

/// One generation of a container.
/// Threads  every const member may be called from any thread, copies may be used by different ones
/// Lifetime pins the generation until the last copy is gone (closing is the only release); keeps
///          its file open, also when another file has taken the name
class generation_view {
 public:
  std::uint64_t generation() const noexcept;

  /// Bytes of the file that this generation may refer to.
  std::uint64_t end_of_file() const noexcept;

  /// Arrays in the catalog. O(1).
  std::uint64_t array_count() const noexcept;

  /// The array of that name, or nothing.
  /// Cost     the pages of one path of the catalog; cached ones are not read again
  /// Throws   corrupt, io, unsupported (from a later version)
  std::optional<array_record> find(std::string_view name) const;

  /// Up to `limit` names in byte order that start with `prefix` and come after `after`.
  std::vector<std::string> list(std::string_view prefix = {}, std::string_view after = {},
                                std::size_t limit = SIZE_MAX) const;

  /// Where chunk `number` of an array of this generation lies; nothing: it reads as the fill value.
  /// The entry has been checked against the file's end and the chunk's size.
  std::optional<chunk_entry> find_chunk(const array_record& record, std::uint64_t number) const;

  /// Up to `limit` chunks that are present, numbers from `first` on, in order.
  std::vector<numbered_chunk> chunks(const array_record& record, std::uint64_t first = 0,
                                     std::size_t limit = SIZE_MAX) const;

  /// Reads a chunk's stored bytes (`into` is entry.stored_bytes long) and verifies them.
  /// Throws   corrupt naming the byte offset, io
  void read_chunk(const chunk_entry& entry, bytes_span into) const;

  /// Reads bytes of the file; all of them or `io`. Verifies nothing.
  void read(std::uint64_t offset, bytes_span into) const;

  /// The checksums of up to `count` segments of a dense array from `first` on, themselves verified;
  /// empty if it has none.
  /// Cost     reads all of the array's checksums, keeps those
  std::vector<std::uint64_t> dense_checksums(const array_record& record, std::uint64_t first = 0,
                                             std::uint64_t count = UINT64_MAX) const;

  /// For mappings of this generation's extents: a description that holds no lock. -1 if there is
  /// none. A mapping must keep a copy of this view alive.
  int descriptor() const noexcept;

 private:
  friend class file;
  friend class transaction;
  friend class verifier;
  struct state;
  explicit generation_view(std::shared_ptr<const state> made) noexcept : state_(std::move(made)) {}
  std::shared_ptr<const state> state_;
};

/// The next generation, being made. Nothing of it can be seen before `commit` returns; destroying
/// it without commit aborts, and the file is as if it had never begun.
/// Threads  one thread at a time (the caller serialises), except `write`, `read` and `descriptor`,
///          which may be called from any thread meanwhile
class transaction {
 public:
  transaction(transaction&&) noexcept;
  transaction& operator=(transaction&&) noexcept;
  ~transaction();

  /// The generation that commit will publish.
  std::uint64_t generation() const noexcept;

  /// False once committed or aborted; then everything but this and the numbers throws
  /// invalid_argument.
  bool active() const noexcept;

  // ---- the catalog, as changed so far -----------------------------------------------------------

  std::optional<array_record> find(std::string_view name) const;
  std::vector<std::string> list(std::string_view prefix = {}, std::string_view after = {},
                                std::size_t limit = SIZE_MAX) const;

  /// Adds the array, or replaces the one of that name. Extents that the old record named and the
  /// new one does not are released; new extents must come from `allocate`. Chunks stay if dtype,
  /// chunk shape, capacity and stages are as before, else they are released.
  /// Throws   invalid_argument (see require_valid; an extent that is nobody's to give)
  void put(const array_record& record);

  /// Removes an array and releases what it occupied. Returns whether it existed.
  bool erase(std::string_view name);

  /// Throws   not_found (from), already_exists (to), invalid_argument (to)
  void rename(std::string_view from, std::string_view to);

  // ---- space ------------------------------------------------------------------------------------

  /// Space for dense bytes or their checksums: aligned, reserved on the device, reading as zeros.
  /// What no record names at commit is given back.
  /// Throws   out_of_space, io
  extent allocate(std::uint64_t bytes);

  /// Space for one chunk's stored bytes, 64-byte aligned, next to this transaction's other chunks;
  /// its old content is unspecified. What no index entry names at commit is given back.
  extent allocate_chunk(std::uint64_t stored_bytes);

  /// Gives back an extent that this transaction allocated and nothing refers to.
  void release(const extent& unused);

  /// Writes inside an allocated extent. A failure makes `commit` refuse.
  /// Throws   out_of_space, io
  void write(std::uint64_t offset, bytes_view bytes) const;

  /// Reads bytes of the file; all of them or `io`.
  void read(std::uint64_t offset, bytes_span into) const;

  /// For mappings, read-write, of extents from `allocate`: a description that holds no lock. Such
  /// mappings must be read-only before their checksums are taken and before `commit`, and must be
  /// replaced by anonymous memory before `abort` or the destructor lets the writer lock go.
  int descriptor() const noexcept;

  /// Says that the extent is being written through a mapping, so that commit's sync has to cover
  /// it. (A test double's chance to compare pages; the sync covers the whole file anyway.)
  void note_mapped_write(const extent& written);

  // ---- chunks -----------------------------------------------------------------------------------

  /// As generation_view's, for the array as changed so far. Throws not_found, invalid_argument (a
  /// dense array).
  std::optional<chunk_entry> find_chunk(std::string_view name, std::uint64_t number) const;
  std::vector<numbered_chunk> chunks(std::string_view name, std::uint64_t first = 0,
                                     std::size_t limit = SIZE_MAX) const;
  void read_chunk(const chunk_entry& entry, bytes_span into) const;

  /// Points a chunk at an extent of `allocate_chunk` whose bytes are (or will be, before commit)
  /// written. The space of the entry that it replaces is released.
  /// Throws   not_found, invalid_argument
  void set_chunk(std::string_view name, std::uint64_t number, const chunk_entry& entry);

  /// Makes a chunk read as the fill value. Returns whether it was present.
  bool erase_chunk(std::string_view name, std::uint64_t number);

  /// allocate_chunk, write and set_chunk in one.
  void store_chunk(std::string_view name, std::uint64_t number, const encoded_chunk& chunk);

  // ---- the end ----------------------------------------------------------------------------------

  /// Makes everything durable, then visible (commit.3 to commit.5 in commit.hpp). `after_sync` runs
  /// between the sync of the data and the superblock: the place to recheck `failed` marks; if it
  /// throws, the transaction is aborted.
  /// Returns  the new generation
  /// Throws   io, out_of_space: aborted. After a failed sync the file object refuses to begin again
  ///          (the kernel may have dropped what it could not write): reopen. If the sync after the
  ///          superblock failed, the new generation may or may not be seen.
  std::uint64_t commit(const std::function<void()>& after_sync = {});

  /// Gives up.
  void abort() noexcept;

  /// Bytes of tree pages, overflow extents and superblocks written so far, `begin`'s rewrite
  /// included.
  std::uint64_t metadata_bytes_written() const noexcept;

 private:
  friend class file;
  struct state;
  explicit transaction(std::unique_ptr<state> made) noexcept;
  std::unique_ptr<state> state_;
};

struct create_options {
  /// Absent: random. Fixed, the same calls make the same bytes.
  std::optional<uuid> id = std::nullopt;

  /// Permission bits, less the process's umask.
  unsigned mode = 0644;
};

/// An open container.
/// Threads  one thread at a time (the caller serialises), except `wait_newer`; the views and the
///          transaction that it makes do not need it any more
class file {
 public:
  /// Makes a container that holds generation 1, empty, and opens it for writing. It appears under
  /// its name whole or not at all.
  /// Throws   already_exists, not_found (directory), access_denied, out_of_space, io,
  ///          unsupported (the file system does not honour open-file-description locks)
  static file create(file_system& files, const std::string& path,
                     const create_options& options = {});

  /// Throws   not_found, access_denied, corrupt, unsupported (later format, or no locks), io
  static file open(file_system& files, const std::string& path, open_access access);

  file(file&&) noexcept;
  file& operator=(file&&) noexcept;
  ~file();

  const std::string& path() const noexcept;
  const uuid& id() const noexcept;
  open_access access() const noexcept;

  /// The newest generation, pinned; the same view as before if nothing newer was committed. Waits
  /// for nobody. Follows the name when a compacted file has taken its place.
  /// Throws   corrupt, io
  generation_view latest();

  /// Begins the next generation: waits for the writer lock, then commit.1 and the scan of commit.2.
  /// Throws   busy (not within `wait`), access_denied (opened for reading), io (a
  ///          reader holds a generation above the newest; or this object is poisoned), corrupt
  transaction begin(patience wait);

  /// The newest generation's number if above `seen`, waiting at most `wait` for one to be
  /// published.
  std::optional<std::uint64_t> wait_newer(std::uint64_t seen, patience wait) const;

  /// Generations that readers, in any process, hold right now.
  std::vector<generation_range> pinned() const;

  /// Whether a sync failed here, so that `begin` refuses.
  bool poisoned() const noexcept;

 private:
  struct state;
  explicit file(std::unique_ptr<state> made) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace shale::format
