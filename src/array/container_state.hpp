// What the handles `container`, `snapshot` and `transaction` hold.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "array/reader_file.hpp"
#include "array/transaction_state.hpp"
#include "format/container_file.hpp"
#include "shale/container.hpp"

namespace shale {

// Readers and writers have an open file object each, so that waiting for the writer lock, or for
// commit's first sync, never holds up a thread that wants a snapshot.
struct container::implementation {
  struct writer_file {
    explicit writer_file(format::file opened) : file(std::move(opened)) {}
    std::mutex mutex;
    format::file file;
  };

  std::string path;
  std::string uuid;

  mutable std::mutex mutex;  // guards the pointers; calls go on with copies of them
  std::shared_ptr<arrays::reader_file> readers;  // null once closed
  std::shared_ptr<writer_file> writer;           // null if opened for reading, or closed

  static std::shared_ptr<implementation> open(const std::string& path, open_mode mode);

  /// Throws   invalid_argument once closed
  std::shared_ptr<arrays::reader_file> reading() const;
};

struct snapshot::implementation {
  std::string path;
  format::generation_view view;

  array make(format::array_record record) const;
};

struct transaction::implementation {
  explicit implementation(std::shared_ptr<arrays::transaction_state> begun)
      : state(std::move(begun)) {}
  ~implementation() { state->abort(); }
  implementation(const implementation&) = delete;
  implementation& operator=(const implementation&) = delete;

  std::shared_ptr<arrays::transaction_state> state;
};

}  // namespace shale
