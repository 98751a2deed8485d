// Lets all readers of a process share one open container file. One thread at a time looks for the
// newest generation; `wait_newer` runs beside it.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>

#include "format/container/container_file.hpp"
#include "parallel/executor/decoded_tile_cache.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::arrays {

/// Threads  every member may be called from any thread
class reader_file {
 public:
  explicit reader_file(format::container_file opened) : file_(std::move(opened)) {}

  /// The newest generation, pinned.
  format::generation_view latest() {
    const std::lock_guard lock(mutex_);
    return file_.latest();
  }

  std::optional<std::uint64_t> wait_newer(std::uint64_t seen,
                                          std::chrono::milliseconds timeout) const {
    return file_.wait_newer(seen, timeout);
  }

  /// The generations that readers in all processes hold.
  std::vector<format::generation_range> pinned() {
    const std::lock_guard lock(mutex_);
    return file_.pinned();
  }

  const std::string& path() const noexcept { return file_.path(); }
  const format::uuid& id() const noexcept { return file_.id(); }

  /// The owner of the chunks that executors keep decoded. Handles of arrays share it, and may
  /// outlive this object.
  const std::shared_ptr<const parallel::tile_owner>& tile_owner() const noexcept { return owner_; }

 private:
  const std::shared_ptr<const parallel::tile_owner> owner_ =
      std::make_shared<const parallel::tile_owner>();
  detail::fork_safe_mutex mutex_;
  format::container_file file_;
};

}  // namespace shale::arrays
