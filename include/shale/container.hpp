// A .shale file: named tensors in generations. A snapshot reads one generation for as long as it
// wants; the one transaction at a time writes the next.
//
//   auto file = container::create("survey.shale");
//   auto change = file.begin();
//   change.create("dem", {.dtype = dtype::float32, .shape = {344, 403}}).write(values);
//   change.commit();
//   tensor dem = file.latest().at("dem").as_tensor();   // zero-copy, stays valid over later
//   commits
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shale/array.hpp"
#include "shale/error.hpp"

namespace [[gnu::visibility("default")]] shale {

/// How long a call may wait for somebody else. (Not std::chrono's: that header costs every includer
/// 4,000 lines.)
struct timeout {
  std::int64_t ms = 0;
};

/// Fails at once, or waits ten seconds.
inline constexpr timeout no_wait{0};
inline constexpr timeout wait_default{10'000};

/// What a handle may begin.
enum class open_mode : std::uint8_t {
  read,   ///< needs only read permission; `begin` throws access_denied
  write,  ///< snapshots, and transactions by `begin`
};

/// One immutable generation of a container.
/// Threads  every member may be called from any thread
/// Lifetime pins its generation, in this process and against writers in others, until the last copy
///          and the last tensor from it is gone; a long-lived snapshot keeps old bytes on disk
class snapshot {
 public:
  /// Counts commits: a later generation has a larger number.
  std::uint64_t generation() const noexcept;

  /// The array of that name, or nothing. Cost: O(log arrays) page reads, no element.
  std::optional<array> find(std::string_view name) const;

  /// Throws   not_found, naming close matches
  array at(std::string_view name) const;

  /// Up to `limit` names in byte order that start with `prefix` and come after `after`.
  std::vector<std::string> names(std::string_view prefix = {}, std::string_view after = {},
                                 std::size_t limit = SIZE_MAX) const;

 private:
  friend class container;
  friend class transaction;
  struct implementation;
  std::shared_ptr<implementation> implementation_;
};

/// The next generation, being made by the one writer. Nothing is visible to others before `commit`;
/// destroying it without commit aborts, and the file is as if it had never begun.
/// Threads  every member may be called from any thread: those that change which arrays there are
///          take turns, while other arrays, or other chunks of one, are written in parallel. `commit`
///          waits for writes that have begun, `abort` makes them throw; so do all later ones. What
///          stores through `as_tensor` has to be done before, and nobody may use the handles of an
///          array that is just being renamed
class transaction {
 public:
  transaction(transaction&&) noexcept;
  transaction& operator=(transaction&&) noexcept;
  ~transaction();

  /// The generation that commit will publish.
  std::uint64_t generation() const noexcept;

  /// A new array. Names are 1 to 1024 bytes of UTF-8 without control characters; '/' separates
  /// levels, none of which is empty or of periods only. Dense arrays start as zeros, chunked ones as
  /// the fill value, taking no space. Throws already_exists, invalid_argument, out_of_space
  writable_array create(std::string_view name, const array_spec& spec);

  /// An existing array, to be changed. Chunked: only chunks that are written are stored anew.
  /// Dense: the whole array is copied into new space first, since old generations stay as they are.
  writable_array update(std::string_view name);

  /// As in the base generation, or as changed so far: reading an array that this transaction is
  /// changing gives what is there at that moment, and only until the transaction ends. An
  /// expression over shifted views of the very array that it is written to has to read a snapshot
  /// instead.
  std::optional<array> find(std::string_view name) const;

  /// Tensors mapped from this transaction's own update of it are cut off, as by abort.
  /// Throws   not_found, naming close matches
  void remove(std::string_view name);

  /// Throws   not_found, already_exists, invalid_argument (`to` as for `create`)
  void rename(std::string_view from, std::string_view to);

  /// A note attached to an array: any bytes, by convention UTF-8 or JSON.
  void set_attribute(std::string_view array, std::string_view key, std::string_view value);

  /// Throws   not_found (array or key)
  void remove_attribute(std::string_view array, std::string_view key);

  /// Makes everything durable, then visible: after a crash at any moment the file holds the old
  /// generation or the new one.
  /// Returns  the new generation
  /// Throws   io, out_of_space: the transaction is aborted; a failed sync poisons the container
  std::uint64_t commit();

  /// Gives up. Tensors mapped from this transaction are cut off from the file.
  void abort() noexcept;

  /// Bytes of tree pages and superblocks that commit wrote; for tests and curiosity.
  std::uint64_t metadata_bytes_written() const noexcept;

 private:
  friend class container;
  struct implementation;
  explicit transaction(std::unique_ptr<implementation> made) noexcept;
  std::unique_ptr<implementation> implementation_;
};

/// One thing that `verify` found.
struct finding {
  errc code;         ///< corrupt or io
  std::string text;  ///< what and where
};

/// What `verify` looked at and found; sound if there are no findings.
struct verification {
  std::uint64_t generation = 0;
  std::uint64_t pages = 0;
  std::uint64_t arrays = 0;
  std::uint64_t chunks = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t live_bytes = 0;  ///< live + freed + free = file size, exactly

  /// Of older generations, whether somebody reads them or not. The next transaction takes what no
  /// pinned generation and not the last one before the newest needs, where a crash may lead back to.
  std::uint64_t freed_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::vector<finding> findings;
};

/// A handle to an open container file; copies share it.
/// Threads  every member may be called from any thread
class container {
 public:
  /// A new file holding an empty generation. Throws already_exists.
  static container create(const std::string& path);

  /// Throws   not_found, corrupt, unsupported (a later format), access_denied, io
  static container open(const std::string& path, open_mode mode = open_mode::read);
  static std::optional<container> open_if_exists(const std::string& path,
                                                 open_mode mode = open_mode::read);
  static container open_or_create(const std::string& path);

  /// The path as it was given to `create` or `open`; for messages.
  const std::string& path() const noexcept;

  /// 16 bytes, fixed at creation, as lower-case hex with dashes.
  std::string uuid() const;

  /// The newest generation, pinned. Never blocks a writer nor waits for one.
  snapshot latest() const;

  /// Begins the next generation, waiting at most `patience` for another writer to finish.
  /// Throws   busy, access_denied, io, corrupt
  transaction begin(timeout patience = wait_default);

  /// Waits until a generation above `seen` is published. Returns the newest, or nothing in time.
  std::optional<std::uint64_t> wait_newer(std::uint64_t seen, timeout patience) const;

  /// Checks every page and every byte of the newest generation.
  verification verify(executor* on = nullptr) const;

  /// Gives up the descriptors now and reports what a destructor could not.
  void close();

 private:
  struct implementation;
  explicit container(std::shared_ptr<implementation> made) noexcept;
  std::shared_ptr<implementation> implementation_;
};

}  // namespace shale
