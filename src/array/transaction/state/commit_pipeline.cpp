#include "array/transaction/state/commit_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "format/transaction/commit.hpp"
#include "storage/system/blocked_signals.hpp"

namespace shale::arrays {

// ---- the state of one commit ------------------------------------------------------------------

void commit_state::wait() const {
  for (outcome now = now_; now == outcome::under_way; now = now_) {
    if (!owner_.is_this_one())
      throw error(errc::invalid_argument, "the commit belongs to another process",
                  {"this process was forked from it: open the container to see its generations"});
    now_.wait(now);
  }
  if (durable()) return;
  if (cause_) throw error(*cause_);  // a copy, because each thread may add to its error
  throw error(errc::io, "the commit failed for an unknown reason");
}

void commit_state::fail(const error* cause) noexcept {
  if (cause != nullptr) cause_.emplace(*cause);
  end(outcome::failed);
}

// ---- beginning and ending ---------------------------------------------------------------------

// No other thread of the child uses the parent's object. Its lock is left alone: in a child that
// was made without the handlers of fork, it may be taken for ever.
std::shared_ptr<commit_pipeline> commit_pipeline::of_child(const commit_pipeline& parents) {
  auto made = std::make_shared<commit_pipeline>(parents.path_);
  made->publishing_failed_ = parents.publishing_failed_;
  return made;
}

commit_pipeline::permission commit_pipeline::reserve() {
  const std::lock_guard lock(mutex_);
  if (publishing_failed_) throw refusal();
  if (active_) return {};
  if (chain_ != nullptr &&
      (chain_->is_awaited() || chain_->unpublished_count() >= format::unpublished_max))
    return {};
  active_ = true;
  return {true, chain_};
}

// pipeline.5. The caller holds the lock.
error commit_pipeline::refusal() const {
  error refused(errc::io, "a commit before this one failed",
                {"file " + path_,
                 "a later one would be durable without it: open the container anew, and check what "
                 "its newest generation holds"});
  if (publishing_error_)
    refused.add_detail(fmt::format("it was: {}", publishing_error_->message()));
  return refused;
}

void commit_pipeline::ended() noexcept {
  const std::lock_guard lock(mutex_);
  active_ = false;
  if (waiting_.empty()) end_chain();
}

// The caller holds the lock. Nothing is left to publish, and no transaction is active.
void commit_pipeline::end_chain() noexcept {
  if (chain_ != nullptr) chain_->end();
  chain_.reset();
}

// The generation is written without the lock: that may take long, and forks wait for the lock. It
// is handed over under the lock, so a thread that publishes finds both the generation and its
// state, or neither.
std::shared_ptr<commit_state> commit_pipeline::hand_over(format::transaction& inner) {
  const auto state = std::make_shared<commit_state>(inner.generation());
  inner.write_unpublished();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(state);
    try {
      inner.hand_over();
    } catch (...) {
      waiting_.pop_back();
      throw;
    }
    chain_ = inner.writer_owner();
    if (publishing_) return state;
    publishing_ = true;
  }
  try {
    const detail::blocked_signals blocked;
    std::thread([self = shared_from_this()] { self->publish_all(); }).detach();
  } catch (...) {
    publish_all();  // the system refused a thread, so this one publishes
  }
  return state;
}

// ---- publishing -------------------------------------------------------------------------------

// The writer that has something to publish. If there is none, the thread that publishes ends.
std::shared_ptr<format::writer> commit_pipeline::next_to_publish() noexcept {
  const std::lock_guard lock(mutex_);
  if (!waiting_.empty()) return chain_;
  publishing_ = false;
  publishing_.notify_all();
  return nullptr;
}

void commit_pipeline::publish_all() noexcept {
  while (const auto chain = next_to_publish()) publish_some(*chain);
}

void commit_pipeline::publish_some(format::writer& chain) noexcept {
  try {
    const std::uint64_t durable = chain.publish_written();
    for (const auto& done : take_ended(durable)) done->succeed();
  } catch (const error& failed) {
    fail_all(&failed);
  } catch (...) {
    fail_all(nullptr);
  }
}

// Takes the commits whose generations are not above `last`. If no transaction is active and no
// other commit waits, it then releases the writer lock (pipeline.4). It allocates nothing.
commit_pipeline::commits commit_pipeline::take_ended(std::uint64_t last) noexcept {
  commits ended;
  const std::lock_guard lock(mutex_);
  const auto next = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const auto& commit) { return commit->generation() > last; });
  ended.splice(ended.end(), waiting_, waiting_.begin(), next);
  if (!active_ && waiting_.empty()) end_chain();
  return ended;
}

// pipeline.2: later generations contain the one that failed. pipeline.5: perhaps nobody has waited
// for it, so the next transaction reports the failure.
void commit_pipeline::fail_all(const error* cause) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!publishing_failed_ && cause != nullptr) publishing_error_.emplace(*cause);
    publishing_failed_ = true;
  }
  for (const auto& failed : take_ended(UINT64_MAX)) failed->fail(cause);
}

}  // namespace shale::arrays
