// Transactions: the next generation of a container, made by its only writer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shale/array.hpp"
#include "shale/array_spec.hpp"
#include "shale/attribute_value.hpp"
#include "shale/dims.hpp"
#include "shale/expr.hpp"
#include "shale/level_entry.hpp"
#include "shale/pending_commit.hpp"
#include "shale/writable_array.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The next generation. Nobody else sees it before `commit`. Destruction without commit aborts, and
/// the file stays as it was.
/// Throws   from every member but `abort`: invalid_argument (it was moved from; except from
///          `generation`, also after the end of the transaction), out_of_memory, io, corrupt
///          (damaged metadata), out_of_space, unsupported (a call that names an array of a later
///          version)
/// Threads  every member may be called from any thread. Calls that make, remove or rename arrays
///          take turns; different arrays, or different chunks of one, can be written in parallel.
///          `commit` waits for writes that have begun; `abort` makes them throw. Later writes
///          throw. Stores through tensors from writable_array::map must end before `commit`. No
///          thread may use the handles of an array while it is renamed
/// Lifetime holds the writer lock until commit, abort or destruction; after `commit_async`, until
///          that generation is durable
class transaction {
 public:
  transaction(transaction&&) noexcept;
  transaction& operator=(transaction&&) noexcept;
  ~transaction();

  /// The number of the generation that commit will publish.
  /// Throws   invalid_argument, if it was moved from
  std::uint64_t generation() const;

  /// Makes a new array. Names are 1 to 1024 bytes of UTF-8 without control characters. '/'
  /// separates levels, each of which has a character other than a period; none of them is
  /// `.attributes`, which is reserved. No array has the name of a level, so `a` and `a/b` are not
  /// arrays at the same time. A dense array starts as zeros. A chunked array starts with the fill
  /// value everywhere, and takes no space.
  /// Cost     O(levels of the name); reserves the space of a dense array
  /// Throws   as every member; already_exists (also if a level of the name is an array, or if the
  ///          name is that of a level: the error names both); invalid_argument (name, dtype, shape,
  ///          chunk shape, codec; a dense array with a chunk shape, a codec or a fill value other
  ///          than 0)
  writable_array create(std::string_view name, const array_spec& spec);

  /// Makes a new array of the given values, with their dtype and shape.
  /// Cost     as `eval` of the expression, block by block: the values need not fit into memory
  /// Throws   as `create` of a specification, and as writable_array::write. Then the array does not
  ///          exist
  /// Threads  a commit that begins meanwhile waits for the whole call
  writable_array create(std::string_view name, const expr& values, const array_form& form = {});

  /// Makes a copy of an array of any container. The copy has the form, the fill value and the
  /// attributes of the array, and so its dimension names too. Chunks are not decoded, and those
  /// that are absent stay absent.
  /// Cost     as writable_array::copy_from
  /// Throws   as `create` of a specification, and as writable_array::copy_from. Then the array does
  ///          not exist
  /// Threads  as `create` of values
  writable_array create_copy(std::string_view name, const array& from);

  /// Makes a new array of that name. If there is an array of the name already, it is removed as by
  /// `remove`, together with its attributes. The old array stays until the new one has its values,
  /// so the values may read it. Until then the new array is listed as `.new-1`, or with the next
  /// number that is free.
  ///
  ///    transaction change = file.begin();
  ///    change.create_or_replace("dem", expr(*change.find("dem")) * 2);
  ///
  /// Cost     as `create`, and as `remove` of the old array
  /// Throws   as `create` (already_exists only for levels), and as `remove`. Then the old array is
  ///          as before. If it cannot be restored, `commit` refuses
  /// Threads  two calls for one name take effect one after the other, in any order. A commit that
  ///          begins meanwhile waits for the whole call
  writable_array create_or_replace(std::string_view name, const array_spec& spec);
  writable_array create_or_replace(std::string_view name, const expr& values,
                                   const array_form& form = {});

  /// Makes an existing array writable. Older generations keep their elements. Before a part of a
  /// dense array is written, the units of 2 MiB from its first element to its last are compared
  /// with their checksums and copied to new space. Generations share the other units. The chunks of
  /// a chunked array that are written are stored in new space.
  /// Cost     O(1)
  /// Throws   as every member; not_found, with names that are similar
  writable_array update(std::string_view name);

  /// Gives an array another extent along any axes. Elements that the old shape did not have read as
  /// the fill value, or as 0 in a dense array. This holds also where the array was longer before.
  /// (In a chunk that is stored, the codec's bitround rounds the fill value too.) Older generations
  /// keep their shape and elements.
  ///
  /// Use the array that this returns. Arrays that this transaction's `update`, `resize` and
  /// `append` returned before, and those that `find` returned after such a call, throw
  /// invalid_argument from then on. A dense array of `find` throws io instead when it is read.
  /// Tensors that were mapped from these arrays are separated from the file.
  /// Cost     chunked: O(chunks that the new shape cuts off or cuts through). Chunks that it cuts
  ///          through are stored again, in parallel. Growing stores no chunk. Commit stores the
  ///          changed pages of the index. Each axis but the first can grow to about 2^(62 / rank)
  ///          times its first number of chunks. Beyond that, or in a file of an older version, the
  ///          index of the array is stored again: O(chunks) entries of 44 bytes.
  ///          Dense: a change of the first axis copies 2 MiB at most, and reserves space for new
  ///          elements. A change of another axis copies the array
  /// Throws   as every member; not_found, with names that are similar; invalid_argument (rank 0,
  ///          another rank, an extent below 0, more than 2^59 bytes of elements); corrupt (a chunk
  ///          that is cut through, or dense bytes that are copied, are damaged), cancelled; busy
  ///          (another call changes the shape, or writes a dense array). The array is then as
  ///          before
  /// Threads  writes of other threads to a chunked array throw invalid_argument at their next chunk
  writable_array resize(std::string_view name, const dims& shape);

  /// Makes an array longer along `axis`, by the extent of `values` along that axis, and stores the
  /// values after its elements. The values are converted to the array's dtype. Their other extents
  /// are those of the array. Negative axes count from the back.
  /// Cost     as `resize`, and as `eval` of the values. Each chunk that gets new elements is stored
  ///          once. A chunk that has old elements too is read first. So an append of less than a
  ///          chunk costs that chunk. An append to a dense array along its first axis copies less
  ///          than 64 KiB of it most times, and never more than 2 MiB. A reduction in the values is
  ///          computed twice if the old extent is no multiple of the chunk's extent
  /// Throws   as `resize`; invalid_argument also for an axis that the array does not have, and for
  ///          values of another rank or other extents; as `eval`, and exceptions of the caller's
  ///          tile sources. Then the array has its old shape and elements. If they cannot be
  ///          restored, `commit` refuses. After a failed evaluation, earlier handles to a chunked
  ///          array throw too. Those to a dense array go on working, unless another call has
  ///          written or mapped the longer array.
  ///          The values may read the array itself. If this transaction has written the array
  ///          before, and its index has to be stored again, such a call throws invalid_argument;
  ///          calling it again succeeds
  /// Threads  appends to different arrays may run at the same time
  writable_array append(std::string_view name, const expr& values, index_t axis = 0);

  /// The array of that name with all changes so far, or nothing. Its elements can be read until the
  /// transaction ends. If an expression reads shifted views of the array that it is written into,
  /// it is computed as a whole into memory first; views of the array in a snapshot avoid this.
  /// Cost     O(1). If this transaction has written a part of a dense array after `update`, the
  ///          other parts are copied, as by writable_array::map
  std::optional<array> find(std::string_view name) const;

  /// As snapshot::names, with all changes so far.
  /// Cost     reads O(log arrays) pages of metadata and those with the names, and copies the names
  /// Threads  takes turns with calls that make, remove or rename arrays
  std::vector<std::string> names(std::string_view prefix = {}, std::string_view after = {},
                                 std::size_t limit = SIZE_MAX) const;

  /// As snapshot::children, with all changes so far.
  /// Threads  takes turns with calls that make, remove or rename arrays
  std::vector<level_entry> children(std::string_view level = {}, std::string_view after = {},
                                    std::size_t limit = SIZE_MAX) const;

  /// Removes an array. Tensors that were mapped from its `update` are separated from the file.
  /// Throws   as every member; not_found, with names that are similar; busy (another call appends
  ///          to it or changes its shape)
  void remove(std::string_view name);

  /// Renames an array.
  /// Throws   as every member; not_found; already_exists, invalid_argument (`to`, as for `create`);
  ///          busy (another call appends to it or changes its shape)
  void rename(std::string_view from, std::string_view to);

  /// Attaches a value to an array under a key, or replaces it. A key is any bytes, by convention
  /// UTF-8. `array::attribute_as` reads the value.
  /// Cost     stores all attributes of the array again: use tens of them, not thousands
  /// Throws   as every member; not_found (the array); invalid_argument (too long, or too many)
  void set_attribute(std::string_view array, std::string_view key, const attribute_value& value);

  /// The same for bytes that are stored as they are. If they are UTF-8, they are a text; if
  /// attribute_value::stored made them, they are that value.
  void set_attribute(std::string_view array, std::string_view key, std::string_view value);

  /// Removes an attribute.
  /// Throws   as every member; not_found (the array or the key)
  void remove_attribute(std::string_view array, std::string_view key);

  /// Attaches a value to a level of names, or to the container, which is the level "". A level
  /// exists as long as it has attributes, or an array below it.
  ///
  ///    transaction change = file.begin();
  ///    change.set_level_attribute("", "title", attribute_value("Survey of 2026"));
  ///
  /// Cost     as for an array
  /// Throws   as set_attribute, but not not_found; already_exists (the level, or one above, is an
  ///          array); invalid_argument also if no array can be below a level of that name
  void set_level_attribute(std::string_view level, std::string_view key,
                           const attribute_value& value);
  void set_level_attribute(std::string_view level, std::string_view key, std::string_view value);

  /// Removes an attribute of a level.
  /// Throws   as every member; not_found (the key); already_exists (an array has the reserved name)
  void remove_level_attribute(std::string_view level, std::string_view key);

  /// The stored bytes of all attributes of a level, with all changes so far, sorted by the bytes of
  /// their keys: see attribute_value::of_stored.
  /// Throws   as every member; already_exists (an array has the reserved name)
  std::vector<std::pair<std::string, std::string>> level_attributes(
      std::string_view level = {}) const;

  /// Makes all changes durable and then visible, and returns the number of the generation. After a
  /// crash at any time the file holds the old generation or the new one.
  /// Cost     reads written dense arrays for their checksums, in parallel; two syncs of the device
  /// Throws   io (also if another file took the name: the message says which file has the
  ///          generation, if any), out_of_space, out_of_memory, cancelled: then the transaction is
  ///          aborted. After a failed sync, the container refuses further transactions. If the last
  ///          sync failed, the generation may still exist, and the message says so: open the
  ///          container anew, and look at `latest` before you make the changes again.
  ///          invalid_argument: it has ended, or the call came from inside one of its own writes
  std::uint64_t commit();

  /// Commits without waiting for the device. The next transaction of this container can begin at
  /// once, and begins with these changes, unless another process waits for its turn. A thread of
  /// the library makes the generations durable and visible, in order, as many as possible with each
  /// pair of syncs. From the moment when the result says that the transaction is durable, all
  /// guarantees are those of `commit`. If the transaction cannot be made durable, all later ones
  /// that began with its changes fail too, and this container begins no more transactions: open it
  /// anew. This call waits as `commit` does while somebody holds a tensor that shows the bytes of a
  /// dense array which this transaction writes (a tensor of writable_array::map, or of an array of
  /// `find`). A program that ends before the result is durable may lose these changes and all later
  /// ones.
  /// Cost     reads written dense arrays for their checksums, in parallel, and writes metadata. It
  ///          syncs nothing, and neither does the next `begin`
  /// Throws   as commit, except for failed syncs, which the result reports; also the error of an
  ///          earlier commit_async that failed
  pending_commit commit_async();

  /// Ends the transaction without changes. Then the container at the path `other`, on the same file
  /// system, takes the name of this container. If `other` is a link, the container that it leads to
  /// is renamed, and the link stays. Nobody else can commit during the transaction, so a copy of
  /// the newest snapshot that is made in that time is complete. For this reason, commits without
  /// waiting must be durable before the transaction begins. All bytes of `other` are made durable
  /// before it takes the name, even if it is a copy that nobody has synced. Waits for writes that
  /// have begun, as `commit` does.
  /// Cost     two syncs: of `other`, with all bytes that are not durable yet, and of the folder
  /// Throws   invalid_argument (the container itself; a call from inside one of its own writes),
  ///          not_found, access_denied (also if the folder cannot be read), busy (another
  ///          transaction writes `other`; or this one began with commits that were not durable
  ///          yet), corrupt, unsupported (a later format), io (also if another file has the name by
  ///          now), out_of_space. The old file keeps its name, with one exception: the rename
  ///          succeeded, and only the sync of the folder failed (io), for example because the file
  ///          system has shut itself down. If the sync of `other` failed (io, out_of_space), make
  ///          that file anew: its bytes may be lost
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
  template <class Fill>
  writable_array replace(std::string_view name, const array_spec& spec, Fill&& fill);
  std::unique_ptr<implementation> implementation_;
};

}  // namespace shale
