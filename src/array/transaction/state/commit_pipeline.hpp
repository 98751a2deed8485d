// Publishes the generations that transactions of this process leave behind when they are committed
// without waiting (docs/decisions/0184, 0185, 0186), and says how the next transaction may begin.
//
// Invariants
//   pipeline.1  one transaction of the container object is active at a time, from `reserve` to
//               `ended`
//   pipeline.2  states end in the order of their generations. A state is durable only if all before
//               it are; if one fails, all after it fail
//   pipeline.3  one thread publishes at a time. It lives while there is something to publish
//   pipeline.4  the writer lock is released once no transaction is active and nothing is left to
//               publish. This happens before the last state ends, so a thread that has waited for
//               that state finds the file free. While another process waits for the lock, no
//               transaction of this object begins with it
//   pipeline.5  if a generation cannot be published, no transaction begins any more: it would
//               become durable although one before it is not
//   pipeline.6  a commit that waits to be published holds no mapping: Linux limits a process to
//               65,530 mappings by default, and its address space may be limited
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "array/transaction/state/commit_state.hpp"
#include "format/transaction/transaction.hpp"
#include "format/transaction/writer.hpp"
#include "shale/error.hpp"
#include "storage/system/fork_handlers.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::arrays {

/// Threads  every member may be called from any thread of the process that made it
class commit_pipeline : public std::enable_shared_from_this<commit_pipeline> {
 public:
  explicit commit_pipeline(std::string path) : path_(std::move(path)) {}

  /// A forked child makes an object of its own: the threads of this one do not exist there.
  bool is_of_this_process() const noexcept { return owner_.is_this_one(); }

  /// Makes the object of a forked child. From the parent's object it takes only whether a
  /// generation could not be published (pipeline.5).
  static std::shared_ptr<commit_pipeline> of_child(const commit_pipeline& parents);

  /// How a transaction may begin.
  struct permission {
    /// If it is false, the caller asks again later.
    bool granted = false;

    /// The writer on whose base the transaction begins. If it is null, the transaction begins on
    /// the newest generation of the file.
    std::shared_ptr<format::writer> on_written{};
  };

  /// Grants the next transaction. The caller calls `ended` when it has ended, or could not begin.
  /// Throws   io: a generation could not be published
  permission reserve();
  void ended() noexcept;

  /// Ends the transaction without publishing it. A thread publishes it later. Nobody may write
  /// through its mappings any more, and the caller has checked them for lost bytes.
  /// Throws   as format::transaction::commit_unpublished: nothing was handed over then
  std::shared_ptr<commit_state> hand_over(format::transaction& inner);

  /// Returns when nothing is being published. The caller is the active transaction, so nothing is
  /// handed over meanwhile.
  void drain() const noexcept { publishing_.wait(true); }

 private:
  using commits = std::list<std::shared_ptr<commit_state>>;

  std::shared_ptr<format::writer> next_to_publish() noexcept;
  void publish_all() noexcept;
  void publish_some(format::writer& chain) noexcept;
  commits take_ended(std::uint64_t last) noexcept;
  void fail_all(const error* cause) noexcept;
  void end_chain() noexcept;
  error refusal() const;

  const std::string path_;  // for messages
  const detail::owning_process owner_{};
  detail::fork_safe_mutex mutex_;          // guards the members below
  bool active_ = false;                    // whether a transaction is active
  std::shared_ptr<format::writer> chain_;  // set while a generation may not be published yet
  commits waiting_;                        // in the order of their generations
  bool publishing_failed_ = false;         // then no transaction begins any more (pipeline.5)
  std::optional<error> publishing_error_;  // why publishing failed, if a shale::error says it
  std::atomic<bool> publishing_ = false;   // changed under `mutex_`; `drain` waits for it
};

}  // namespace shale::arrays
