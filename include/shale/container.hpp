// Containers: .shale files with named arrays. Each commit makes a new generation of the file. A
// snapshot reads one generation, which stays as it is; one transaction at a time writes the next.
//
//   auto file = container::create("survey.shale");
//   auto change = file.begin();
//   change.create("dem", {.dtype = dtype::float32, .shape = {344, 403}}).write(values);
//   change.commit();
//   tensor dem = file.latest().at("dem").map();   // zero-copy, valid over later commits
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shale/array.hpp"
#include "shale/snapshot.hpp"
#include "shale/space_report.hpp"
#include "shale/verification.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The longest time that a call may wait: below 0 counts as 0, above 100 years as 100 years.
/// (<chrono> would add 4,000 lines to every user.)
struct timeout {
  std::int64_t ms = 0;
};

/// Do not wait; wait for up to ten seconds.
inline constexpr timeout no_wait{0};
inline constexpr timeout wait_default{10'000};

/// The operations that a handle allows.
enum class open_mode : std::uint8_t {
  read,               ///< snapshots only; needs only the right to read
  write,              ///< snapshots and transactions
  write_exclusively,  ///< also on network file systems; you promise that no other host has it open
  salvage,            ///< as read; if the newest commit is lost, reads the generation before it
};

/// The next generation. Nobody else sees it before `commit`. Destruction without commit aborts, and
/// the file stays as it was.
/// Throws   from every member but `abort`: invalid_argument (moved from; for all but `generation`
///          also: the transaction has ended), out_of_memory, io, corrupt (damaged metadata),
///          out_of_space
/// Threads  every member may be called from any thread. Calls that make, remove or rename arrays
///          take turns; different arrays, or different chunks of one, can be written in parallel.
///          `commit` waits for writes that have begun, `abort` makes them throw; later ones throw.
///          Stores through tensors from writable_array::map must end before `commit`. No thread may
///          use the handles of an array while it is renamed
/// Lifetime holds the writer lock until commit, abort or destruction
class transaction {
 public:
  transaction(transaction&&) noexcept;
  transaction& operator=(transaction&&) noexcept;
  ~transaction();

  /// The number of the generation that commit will publish.
  /// Throws   invalid_argument, if it was moved from
  std::uint64_t generation() const;

  /// Makes a new array. Names are 1 to 1024 bytes of UTF-8 without control characters. '/'
  /// separates levels, each of which has a character other than a period. A dense array starts as
  /// zeros. A chunked array starts with the fill value everywhere, and takes no space.
  /// Cost     O(1); reserves the space of a dense array
  /// Throws   as every member; already_exists; invalid_argument (name, dtype, shape, chunk shape,
  ///          codec; a dense array with a chunk shape, a codec or a fill value other than 0)
  writable_array create(std::string_view name, const array_spec& spec);

  /// Makes a new array of the given values, with their dtype and shape.
  /// Cost     as `eval` of the expression, block by block: the values need not fit into memory
  /// Throws   as the other one, and as writable_array::write. Then the array does not exist
  writable_array create(std::string_view name, const expr& values, const array_form& form = {});

  /// An existing array, which can then be changed. Older generations keep their elements. Before a
  /// part of a dense array is written, it is copied to new space, in units of 2 MiB from its first
  /// element to its last, and compared with its checksums; generations share the other units. Of a
  /// chunked array, the chunks that are written are stored in new space.
  /// Cost     O(1)
  /// Throws   as every member; not_found, with names that are similar
  writable_array update(std::string_view name);

  /// Gives an array another extent along any axes. Elements that the old shape did not have read as
  /// the fill value (of a dense array: 0), also where the array was longer before. (In a chunk that
  /// is stored, the codec's bitround rounds the fill value too.) Older generations keep their shape
  /// and elements. Arrays that this transaction's `update`, `resize` and `append` returned before,
  /// and those of `find` after them, throw invalid_argument from then on (those of `find`, if the
  /// array is dense, io when they are read); use the one that this returns. Tensors that were mapped
  /// from them are separated from the file.
  /// Cost     chunked: O(chunks that the new shape cuts off or cuts through): those that it cuts
  ///          through are stored again, in parallel. Growing stores no chunk. Commit stores the
  ///          changed pages of the index. If an axis other than the first outgrows its room (a file
  ///          of an older version; or about 2^(62 / rank) times the chunks of the first shape), the
  ///          index of the array is stored again, which is O(chunks) entries of 44 bytes.
  ///          Dense: along the first axis, a copy of 2 MiB at most, and space for what is new. A
  ///          change of another axis copies the array
  /// Throws   as every member; not_found, with names that are similar; invalid_argument (rank 0,
  ///          another rank, an extent below 0, more than 2^59 bytes of elements); corrupt (a chunk
  ///          that is cut through, or dense bytes that are copied, are damaged), cancelled; busy
  ///          (another call changes the shape, or writes a dense array). The array is then as before
  /// Threads  writes of other threads to a chunked array throw invalid_argument at their next chunk
  writable_array resize(std::string_view name, const dims& shape);

  /// Makes an array longer along `axis`, by the extent of `values` there, and stores them after its
  /// elements. They are converted to the array's dtype; their other extents are those of the array.
  /// Negative axes count from the back.
  /// Cost     as `eval` of the values, and each chunk that gets new elements is stored once. Chunks
  ///          that have old elements too are read first. So an append of less than a chunk costs
  ///          that chunk, and an append to a dense array along its first axis 2 MiB at most. Values
  ///          with a reduction compute it twice if the old extent is no multiple of the chunk's. And
  ///          the costs of `resize`
  /// Throws   as `resize`; invalid_argument also for an axis that the array does not have, and for
  ///          values of another rank or other extents; as `eval`, and exceptions of the caller's
  ///          tile sources. The array has its old shape and elements then, or, if even that fails,
  ///          `commit` refuses. After a failed evaluation, earlier handles to the array throw too
  ///          The values may read the array itself. But if its index has to be stored again, and this
  ///          transaction has written it before: invalid_argument; a second call then succeeds. If it
  ///          is dense, and this transaction has written it before: io; read a snapshot's instead
  /// Threads  appends to different arrays may run at the same time
  writable_array append(std::string_view name, const expr& values, index_t axis = 0);

  /// The array of that name with all changes so far, or nothing. Its elements can be read until the
  /// transaction ends. If an expression reads shifted views of the array that it is written into,
  /// it is computed as a whole into memory first; views of the array in a snapshot avoid this.
  /// Cost     O(1). For a dense array that this transaction has written in part after `update`: a
  ///          copy of its other parts, as writable_array::map makes it
  std::optional<array> find(std::string_view name) const;

  /// As snapshot::names, with all changes so far.
  /// Cost     reads O(log arrays) pages of metadata and those with the names, and copies the names
  /// Threads  takes turns with calls that make, remove or rename arrays
  std::vector<std::string> names(std::string_view prefix = {}, std::string_view after = {},
                                 std::size_t limit = SIZE_MAX) const;

  /// Removes an array. Tensors that were mapped from its `update` are separated from the file.
  /// Throws   as every member; not_found, with names that are similar; busy (another call appends to
  ///          it or changes its shape)
  void remove(std::string_view name);

  /// Renames an array.
  /// Throws   as every member; not_found; already_exists; invalid_argument (`to`, as for `create`);
  ///          busy (another call appends to it or changes its shape)
  void rename(std::string_view from, std::string_view to);

  /// Attaches a value to an array under a key, or replaces it. Both are any bytes, by convention
  /// UTF-8 or JSON.
  /// Cost     stores all attributes of the array again: use tens of them, not thousands
  /// Throws   as every member; not_found (the array); invalid_argument (too long, or too many)
  void set_attribute(std::string_view array, std::string_view key, std::string_view value);

  /// Removes an attribute.
  /// Throws   as every member; not_found (the array or the key)
  void remove_attribute(std::string_view array, std::string_view key);

  /// Makes all changes durable and then visible, and returns the number of the generation. After a
  /// crash at any time the file holds the old generation or the new one.
  /// Cost     reads written dense arrays for their checksums, in parallel; two syncs of the device
  /// Throws   io (also if another file took the name: the message says which file has the
  ///          generation, if any), out_of_space, out_of_memory, cancelled: the transaction is
  ///          aborted, and after a failed sync the container refuses further ones. If the last sync
  ///          failed, the generation may exist all the same, and the message says so: open the
  ///          container anew, and look at `latest` before you make the changes again.
  ///          invalid_argument: it has ended, or the call came from inside one of its own writes
  std::uint64_t commit();

  /// Ends the transaction without changes. Then the container at the path `other`, on the same file
  /// system, takes the name of this container. If `other` is a link, the container that it leads to
  /// is renamed, and the link stays. Nobody can commit meanwhile, so a copy of the newest snapshot
  /// that was made during the transaction is complete. Waits for writes that have begun, as
  /// `commit` does.
  /// Throws   invalid_argument (the container itself; a call from inside one of its own writes),
  ///          not_found, busy (another transaction writes `other`), corrupt, unsupported (a later
  ///          format), io (also if another file has the name by now). The old file keeps its name,
  ///          unless only the sync of the folder failed after the rename (io)
  /// Lifetime open snapshots keep the old file. Handles to it throw `io`: open the name again
  void replace_by(const std::string& other);

  /// Ends the transaction without changes. Tensors that were mapped from it are separated from the
  /// file. Called from inside one of its own writes, it makes that write throw and then ends. It
  /// does nothing if the transaction has ended or was moved from.
  void abort() noexcept;

 private:
  friend class container;
  struct implementation;
  explicit transaction(std::unique_ptr<implementation> made) noexcept;
  implementation& begun() const;
  std::unique_ptr<implementation> implementation_;
};

/// A handle to an open container. Copies share it.
/// Throws   invalid_argument from every member but `close`, if the handle was moved from
/// Threads  every member may be called from any thread
class container {
 public:
  /// Makes a new file with an empty generation and opens it. The umask of the process is removed
  /// from the permission bits.
  /// Throws   already_exists; out_of_space; invalid_argument (a mode that only reads; permissions
  ///          with other bits than 0777, or without 0600, which the owner needs); and as `open`. No
  ///          file is left behind then
  static container create(const std::string& path, open_mode mode = open_mode::write,
                          unsigned permissions = 0644);

  /// Opens an existing file. The path is resolved once, to a name in a folder; later changes of the
  /// working directory or of links have no effect. If another container takes the name later, as by
  /// `replace_by`, calls throw io: open the name again. `open_if_exists` returns nothing instead of
  /// throwing not_found; `open_or_create` creates the file if it does not exist.
  /// Cost     a few page reads; 3 descriptors, and 16 at most for snapshots
  /// Throws   not_found, access_denied (permissions), unsupported (a later format; for writing, a
  ///          network file system)
  ///          invalid_argument (a folder, a device or a pipe; a name that is too long)
  ///          corrupt (no container, or damaged; also if only the newest commit cannot be found,
  ///          except with open_mode::salvage)
  ///          busy (a lock of another program is in the way), out_of_memory, io
  static container open(const std::string& path, open_mode mode = open_mode::read);
  static std::optional<container> open_if_exists(const std::string& path,
                                                 open_mode mode = open_mode::read);
  static container open_or_create(const std::string& path, open_mode mode = open_mode::write);

  /// The path that was given to `create` or `open`, for messages.
  const std::string& path() const;

  /// The identifier of the container, 16 bytes as lower-case hexadecimal digits with dashes. It
  /// never changes.
  /// Throws   out_of_memory, and as every member
  std::string uuid() const;

  /// Pins the newest generation. It never waits for a writer and never blocks one.
  /// Throws   invalid_argument (closed), io (also if another container took the name), not_found
  ///          (no file has the name any more), corrupt, unsupported (a later format),
  ///          access_denied, out_of_memory
  snapshot latest() const;

  /// Begins the next generation. Waits for transactions of other threads and processes, up to
  /// `limit`.
  /// Cost     writes both superblocks again, and a sync of the device
  /// Throws   as latest; busy (the time is over), access_denied (a mode that only reads),
  ///          unsupported (on a network file system), out_of_space, io (also if an earlier sync of
  ///          this container failed)
  transaction begin(timeout limit = wait_default);

  /// Waits until there is a generation with a number above `seen`, up to `limit`. Returns the
  /// newest number, or nothing if the time is over.
  /// Throws   as latest
  std::optional<std::uint64_t> wait_newer(std::uint64_t seen, timeout limit) const;

  /// Checks all metadata and all elements of the newest generation. Damage becomes findings, not
  /// exceptions.
  /// Cost     reads all bytes of the generation, in parallel
  /// Throws   as latest; cancelled
  verification verify() const;

  /// Tells what takes the bytes of the file: the arrays of the newest generation, its metadata, older
  /// generations that are held, and free space. An array of a later version has a problem instead.
  /// Cost     reads all metadata, and no element
  /// Throws   as latest; corrupt also for damaged metadata of any array
  space_report space() const;

  /// Closes the file for all copies of this handle: their calls, except `path` and `uuid`, throw
  /// invalid_argument then. Snapshots, arrays, tensors and a running transaction stay valid. Never
  /// throws, even if the handle was moved from: a commit has synced everything before it returned,
  /// so closing has no error to report.
  void close();

 private:
  struct implementation;
  explicit container(std::shared_ptr<implementation> made) noexcept;
  implementation& state() const;
  std::shared_ptr<implementation> implementation_;
};

}  // namespace shale
