// The container file as its readers share it: one open object, used by one thread at a time.
#pragma once

#include <mutex>

#include "format/container_file.hpp"

namespace shale::arrays {

/// Threads  every member may be called from any thread
class reader_file {
 public:
  explicit reader_file(format::file opened) : file_(std::move(opened)) {}

  /// The newest generation, pinned.
  format::generation_view latest() {
    const std::lock_guard lock(mutex_);
    return file_.latest();
  }

  std::optional<std::uint64_t> wait_newer(std::uint64_t seen, format::patience wait) const {
    return file_.wait_newer(seen, wait);
  }

  const std::string& path() const noexcept { return file_.path(); }
  const format::uuid& id() const noexcept { return file_.id(); }

 private:
  std::mutex mutex_;
  format::file file_;
};

}  // namespace shale::arrays
