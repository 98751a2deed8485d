#include "format/transaction/writer_lock_wait.hpp"

#include <algorithm>
#include <cerrno>

#include "format/os/file_io.hpp"
#include "format/os/locks.hpp"

namespace shale::format {

// Whether this writer may try the writer lock: it holds the queue byte, or nobody does.
bool writer_lock_wait::is_first(open_file& lock, const turn& mine) const {
  if (mine.in_queue != nullptr) return true;
  found_lock ignored;
  const os_result result = uninterrupted([&] {
    return lock.find_lock({queue_lock, queue_lock}, ignored);
  });
  if (result < 0) throw failure("cannot look for the lock of the queue", result, place_->shown());
  return result == 0;
}

void writer_lock_wait::join_queue(turn& mine) {
  std::unique_ptr<open_file> description;
  const os_result result =
      uninterrupted([&] { return place_->files().open_unshared(place_->name(), description); });
  // If no descriptor is left for a place in the queue, the writer waits without one.
  may_queue_ = result != -EMFILE && result != -ENFILE;
  if (result < 0 && may_queue_) throw opening_failure("cannot open file", result, place_->shown());
  if (result >= 0 && try_exclusive(*description, queue_lock, place_->shown()))
    mine.in_queue = std::move(description);
}

writer_lock_wait::turn writer_lock_wait::take() {
  turn mine{open_unshared(*place_), nullptr};
  may_queue_ = true;
  for (;;) {
    if (is_first(*mine.lock, mine) && try_exclusive(*mine.lock, writer_lock, place_->shown()))
      return mine;
    if (mine.in_queue == nullptr && may_queue_) join_queue(mine);
    const auto waited = std::chrono::floor<std::chrono::milliseconds>(waited_);
    if (waited >= timeout_) throw writer_is_busy(*mine.lock, waited, place_->shown());
    step_ = std::min({step_, timeout_ - waited, lock_step_max});
    waited_ += place_->files().pause(step_);
    if (mine.in_queue == nullptr) step_ *= 2;  // the holder of the queue byte keeps looking often
  }
}

}  // namespace shale::format
