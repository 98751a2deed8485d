// Makes the next generation of a container. There is one transaction at a time. A transaction that
// ends with `commit_unpublished` leaves its generation to the next one as its base, and to
// `writer::publish_written` to make it durable (commit.10).
//
// Three parts do the work, in the order of a commit:
//
//   changed_arrays    the catalog and the chunk indexes
//   generation_space  the space map, and the pages that are written
//   writer            the lock, the syncs and the superblock: the steps of commit.hpp
//
// A transaction owns the parts, checks that it is still active, and calls them in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/catalog/array_record.hpp"
#include "format/chunks/chunk_entry.hpp"
#include "format/chunks/cut_chunks.hpp"
#include "format/generations/generation_view.hpp"
#include "format/os/file_system.hpp"
#include "shale/level_entry.hpp"
#include "storage/files/write_back_record.hpp"

namespace shale::format {

class writer;

/// The outcome of a commit at the moment when the writer lock is about to be released.
enum class commit_outcome : std::uint8_t {
  durable,  ///< the new generation is durable, and the newest one of its file
  failed    ///< it was not published, or its superblock may not be durable
};

/// Functions of the caller that a commit calls between its steps.
struct commit_steps {
  /// Called between the sync of the data and the write of the superblock, so that the caller can
  /// check the `failed` marks of its mappings again. If it throws, the transaction is aborted.
  std::function<void()> after_sync = {};

  /// Called once before the writer lock is released, whether the commit succeeds or fails. After
  /// that another writer may use the space of every generation that is not pinned. So the caller
  /// pins what it goes on to read, and replaces all other mappings of `descriptor()` by anonymous
  /// memory. It must not throw.
  std::function<void(commit_outcome)> before_release = {};
};

/// No reader sees a change before `commit` publishes it. Destroying a transaction without commit
/// aborts it, and leaves the newest generation as it was.
/// Threads  one thread at a time (the caller serialises), except `write`, `read`, `read_chunk` and
///          `descriptor`, which may be called from any thread meanwhile
class transaction {
 public:
  /// Begins with the base that `held` has adopted. Reads the retained generations and the unused
  /// part of the space map. Throws   corrupt, io
  explicit transaction(std::shared_ptr<writer> held);
  transaction(transaction&&) noexcept;
  transaction& operator=(transaction&&) noexcept;
  ~transaction();

  /// The generation that commit will publish.
  std::uint64_t generation() const noexcept;

  /// The writer, for `begin_on_written` and `writer::publish_written` after `commit_unpublished`.
  const std::shared_ptr<writer>& writer_owner() const noexcept;

  /// Whether the container's name still leads to the transaction's file.
  bool has_its_name() const noexcept;

  /// Pins the base generation, which may not be published (commit.10), while the transaction is
  /// active.
  /// Throws   io (the name leads to another file), busy (another program's lock), corrupt
  generation_view pin_base() const;

  /// False after commit or abort. Every other member then throws invalid_argument, except those
  /// that return the generation and the number of bytes.
  bool active() const noexcept;

  // ---- the catalog, as changed so far -----------------------------------------------------------

  std::optional<array_record> find(std::string_view name) const;
  std::vector<std::string> list(std::string_view prefix = {}, std::string_view after = {},
                                std::size_t limit = SIZE_MAX) const;

  /// See list_children.
  std::vector<level_entry> children(std::string_view level = {}, std::string_view after = {},
                                    std::size_t limit = SIZE_MAX) const;

  /// Adds the array, or replaces the one of that name. Extents that the old record named and the
  /// new one does not are released; new extents must come from `allocate`. Chunks stay if dtype,
  /// shape, chunk shape, capacity and stages are as before, else they are released (`resize` keeps
  /// those that a new shape has).
  /// Throws   invalid_argument (see require_valid; a new extent that is not from `allocate`)
  void put(const array_record& record);

  /// Removes an array and releases its space. Returns whether it existed.
  bool erase(std::string_view name);

  /// Throws   not_found (from), already_exists (to), invalid_argument (to)
  void rename(std::string_view from, std::string_view to);

  // ---- space ------------------------------------------------------------------------------------

  /// Space for dense bytes or their checksums: aligned, reserved on the device. The caller writes
  /// the first `overwritten` bytes, whose old content is unspecified. The others read as zeros.
  /// Commit gives back extents that no record refers to.
  /// Throws   out_of_space, io
  extent allocate(std::uint64_t bytes, std::uint64_t overwritten = 0);

  /// Space for one chunk's stored bytes, 64-byte aligned, next to this transaction's other chunks;
  /// its old content is unspecified. Commit gives back extents that no index entry refers to.
  extent allocate_chunk(std::uint64_t stored_bytes);

  /// Gives back an extent that this transaction allocated and nothing refers to.
  void release(const extent& unused);

  /// Gives back all extents that begin in that range of the file, that this transaction allocated
  /// and that nothing refers to. The range belongs to one owner.
  void release_within(const extent& range);

  /// Writes inside an allocated extent. A failure makes `commit` refuse.
  /// Throws   out_of_space, io
  void write(std::uint64_t offset, bytes_view bytes) const;

  /// Makes `commit` refuse, because a change was made in part and could not be undone.
  void refuse_commit() noexcept;

  /// Reads bytes of the file; all of them or `io`.
  void read(std::uint64_t offset, bytes_span into) const;

  /// The descriptor for writable mappings of extents from `allocate`; its description holds no
  /// lock. The caller must make such mappings read-only before it computes their checksums and
  /// before `commit`. It must replace them by anonymous memory before the writer lock is released:
  /// before `abort`, `replace_by` or the destructor, and in a commit by `before_release`.
  int descriptor() const noexcept;

  /// Keeps `descriptor()` open for as long as a copy lives, even after the transaction.
  std::shared_ptr<const void> descriptor_owner() const noexcept;

  /// The file that the transaction changes.
  const file_identity& file() const noexcept;

  /// Must be called before an extent of `allocate` is written through a mapping. Reserves the rest
  /// of the extent's first and last page of the system, so that no store needs space. (It also
  /// tells a test double which pages to compare; the sync covers the whole file anyway.)
  /// Throws   out_of_space, io
  void prepare_mapped_write(const extent& written);

  /// The record for write-back errors of this transaction's mappings. If a mapping reports an error
  /// here, the commit fails, and the file object refuses to begin again.
  std::shared_ptr<shale::detail::write_back_record> write_back() const noexcept;

  /// Throws   io, out_of_space if written bytes may be lost: checksums must not be computed from
  ///          them
  void check_written() const;

  // ---- chunks -----------------------------------------------------------------------------------

  /// Like the members of generation_view with these names, for the array as changed so far. Throws
  /// not_found, invalid_argument (a dense array).
  std::optional<chunk_entry> find_chunk(std::string_view name, std::uint64_t number) const;

  /// How often the transaction has taken space so far. While the number stays, the bytes of every
  /// entry that `find_chunk` has returned stay too, even if the chunk is replaced.
  std::uint64_t times_space_taken() const noexcept;
  std::vector<numbered_chunk> chunks(std::string_view name, std::uint64_t first = 0,
                                     std::size_t limit = SIZE_MAX) const;
  void read_chunk(const chunk_entry& entry, bytes_span into) const;

  /// Points a chunk at an extent of `allocate_chunk`, whose bytes are written before or after this,
  /// but before commit. The space of the entry that it replaces is released.
  /// Throws   not_found, invalid_argument
  void set_chunk(std::string_view name, std::uint64_t number, const chunk_entry& entry);

  /// Makes a chunk read as the fill value. Returns whether it was present.
  bool erase_chunk(std::string_view name, std::uint64_t number);

  /// The chunks that a new shape of a chunked array cuts off or cuts through.
  /// Throws   not_found, invalid_argument (a dense array), corrupt, io
  cut_chunks chunks_cut_by(std::string_view name, const dims& shape);

  /// Gives a chunked array another shape of the same rank. Chunks outside of it are erased. Those
  /// that it cuts through must have been stored again, with the fill value beyond the new shape:
  /// `replaced` has an entry for each, as `chunks_cut_by` lists them, from `allocate_chunk`. An
  /// entry of 0 stored bytes stands for a chunk that is erased.
  /// Cost     O(chunks that are cut). If an axis but the first outgrows the capacity of the grid,
  ///          all entries of the index are written again, but no chunk
  /// Throws   not_found, invalid_argument (a dense array; a shape that cannot be stored; chunks
  ///          that are not replaced), corrupt, io
  void resize(std::string_view name, const dims& shape, std::span<const numbered_chunk> replaced);

  // ---- the end ----------------------------------------------------------------------------------

  /// Makes everything durable, then visible (commit.3 to commit.5 in commit.hpp).
  /// Returns  the new generation
  /// Throws   the error of an earlier change or write: the transaction goes on, but can only be
  ///          aborted. io, out_of_space, exceptions of `after_sync`: aborted. After a failed sync
  ///          the file object refuses to begin again, because the kernel may have dropped pages
  ///          that it could not write: open the file anew. If the sync after the superblock failed,
  ///          readers may or may not see the generation.
  std::uint64_t commit(const commit_steps& during = {});

  /// commit.10: writes the generation, but syncs and publishes nothing. It becomes the base of the
  /// next transaction of the same writer, which keeps the writer lock.
  /// Returns  the generation
  /// Throws   as commit, except for syncs; the error of an earlier generation that could not be
  ///          published
  std::uint64_t commit_unpublished();

  /// The two steps of commit_unpublished. `hand_over` makes no system call if it succeeds, so a
  /// caller may hold a lock during it. Nothing but `abort` may come between the steps.
  /// Throws   as commit_unpublished; invalid_argument (hand_over without the first step)
  void write_unpublished();
  void hand_over();

  /// Ends the transaction without a commit, and gives the container's name to the file at `other`
  /// (an absolute path in the same file system). That file must be a sound container that nobody
  /// writes to. This transaction has held the writer lock from its beginning, and began with a
  /// published generation. So a copy of this container that was made in that time lacks no commit.
  /// All bytes of `other` are made durable first.
  /// Throws   invalid_argument (the same file), busy (also if the base was not published when the
  ///          transaction began), corrupt, not_found, access_denied, unsupported, io, out_of_space.
  ///          If only the sync of the directory failed (io), the file has the name, but a power cut
  ///          may undo that
  void replace_by(const std::string& other);

  /// Ends the transaction without a commit.
  void abort() noexcept;

  /// Bytes of tree pages, overflow extents and superblocks written so far, `begin`'s rewrite
  /// included.
  std::uint64_t metadata_bytes_written() const noexcept;

 private:
  struct parts;

  void require_active() const;
  void require_consistent() const;
  template <class Step>
  void or_abort(Step&& step);

  std::unique_ptr<parts> parts_;
};

/// commit.10: begins the next generation on the one that the writer's last transaction handed over.
/// It does not sync, and does not wait.
/// Throws   busy (unpublished_max), and the error of a generation that could not be published; also
///          as the constructor
transaction begin_on_written(std::shared_ptr<writer> held);

}  // namespace shale::format
