// The implementations of the handles `container`, `snapshot` and `transaction`.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "array/transaction/reader_file.hpp"
#include "array/transaction/shared_transaction.hpp"
#include "format/container/container_file.hpp"
#include "format/os/bound_path.hpp"
#include "parallel/threads/single_turn.hpp"
#include "shale/container.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale {

// Readers and writers use different file objects. So a thread that takes a snapshot never waits for
// a thread that waits for the writer lock or syncs a commit.
struct container::implementation {
  struct writer_file {
    explicit writer_file(format::container_file opened) : file(std::move(opened)) {}
    parallel::single_turn turn;  // held by the thread that begins a transaction
    format::container_file file;
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
};

struct snapshot::implementation {
  std::string path;
  format::generation_view view;

  array make(format::array_record record) const;
};

struct transaction::implementation {
  explicit implementation(std::shared_ptr<arrays::shared_transaction> begun)
      : state(std::move(begun)) {}
  ~implementation() { state->abort(); }
  implementation(const implementation&) = delete;
  implementation& operator=(const implementation&) = delete;

  std::shared_ptr<arrays::shared_transaction> state;
};

}  // namespace shale
