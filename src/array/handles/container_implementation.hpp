// The implementations of the handles `container`, `snapshot` and `transaction`.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "array/transaction/changes/transaction_end.hpp"
#include "array/transaction/shared_transaction.hpp"
#include "array/transaction/state/commit_pipeline.hpp"
#include "array/transaction/state/commit_state.hpp"
#include "array/transaction/state/reader_file.hpp"
#include "format/container/container_file.hpp"
#include "format/os/bound_path.hpp"
#include "parallel/threads/single_turn.hpp"
#include "shale/container.hpp"
#include "shale/transaction.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale {

// Readers and writers use different file objects. So a thread that takes a snapshot never waits for
// a thread that waits for the writer lock or syncs a commit.
struct container::implementation {
  struct writer_file {
    explicit writer_file(format::container_file opened) : file(std::move(opened)) {}
    parallel::single_turn turn;  // held by the thread that begins a transaction
    format::container_file file;
    // Replaced in a forked child, under the `mutex` of the container.
    std::shared_ptr<arrays::commit_pipeline> pipeline =
        std::make_shared<arrays::commit_pipeline>(file.path());
  };

  std::string path;
  std::string uuid;

  mutable detail::fork_safe_mutex mutex;  // guards the pointers; calls go on with copies of them
  std::shared_ptr<arrays::reader_file> readers;  // null after `close`
  std::shared_ptr<writer_file> writer;           // null if opened for reading, or closed

  static std::shared_ptr<implementation> open(const format::bound_path& place, open_mode mode);

  /// Throws   invalid_argument once closed
  std::shared_ptr<arrays::reader_file> reading() const;

  /// Waits for other writers, of this process and of others, for at most `timeout` in all. Starts
  /// over if the name is given to another copy of the container meanwhile.
  /// Throws   as container::begin
  std::shared_ptr<arrays::shared_transaction> begin(std::chrono::milliseconds timeout);

 private:
  std::shared_ptr<arrays::shared_transaction> begin_anew(
      writer_file& to, const std::shared_ptr<arrays::commit_pipeline>& pipeline,
      std::chrono::steady_clock::time_point deadline) const;
};

struct snapshot::implementation {
  std::string path;
  format::generation_view view;
  std::shared_ptr<const parallel::tile_owner> owner;  // of decoded chunks

  /// The record that holds the attributes of a level; nothing if it has none.
  std::optional<format::array_record> find_level(std::string_view level) const;

  /// How messages name a level: the container by its path.
  std::string label(std::string_view level) const;
};

struct transaction::implementation {
  explicit implementation(std::shared_ptr<arrays::shared_transaction> begun)
      : state(std::move(begun)) {}
  ~implementation() { arrays::transaction_end(*state).abort(); }
  implementation(const implementation&) = delete;
  implementation& operator=(const implementation&) = delete;

  std::shared_ptr<arrays::shared_transaction> state;
};

struct pending_commit::implementation {
  std::shared_ptr<const arrays::commit_state> state;
};

}  // namespace shale
