#include "parallel/threads/helper_arena.hpp"

#include <algorithm>
#include <mutex>

#include "parallel/threads/arena_tasks.hpp"
#include "storage/system/fork_handlers.hpp"

namespace shale::parallel {

helper_arena::helper_arena(int helpers)
    : helpers_(helpers),
      arena_(std::make_unique<tbb::task_arena>(helpers + 1)),
      team_(helper_team::make(helpers)) {
  start(*arena_);
}

// The destructor of an arena that has thrown could wait for ever (arena.1).
helper_arena::~helper_arena() {
  if (team_->failed()) leak(arena_.release());
}

// ---- between executors --------------------------------------------------------------------------

idle_arenas& idle_arenas::of_process() {
  static auto* const all = new idle_arenas;
  return *all;
}

std::unique_ptr<helper_arena> idle_arenas::take(int helpers) noexcept {
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (!turn) return nullptr;
  for (auto& kept : kept_)
    if (kept && kept->helpers() == helpers) return std::move(kept);
  return nullptr;
}

void idle_arenas::keep(std::unique_ptr<helper_arena> unused) noexcept {
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (!turn) return;
  const auto free = std::find(kept_.begin(), kept_.end(), nullptr);
  auto& place = free != kept_.end() ? *free : kept_[next_++ % kept_.size()];
  place.swap(unused);
}

// ---- the arenas of an executor ------------------------------------------------------------------

namespace {

constexpr unsigned nobody = ~0u;
constinit std::atomic<unsigned> first_user = nobody;  // the fork_generation of that process

// Whether there was an arena before this process was forked. The child has none of oneTBB's
// threads, oneTBB starts no others there, and one of its locks may be held for ever.
bool has_parents_arenas() noexcept {
  const unsigned user = first_user.load(std::memory_order_relaxed);
  return user != nobody && user != detail::fork_generation();
}

}  // namespace

helper_arenas::~helper_arenas() {
  if (has_parents_arenas()) {
    for (auto& arena : made_) static_cast<void>(arena.release());
    return;
  }
  if (!made_.empty() && !made_.back()->team().failed())
    idle_arenas::of_process().keep(std::move(made_.back()));
}

helper_arena* helper_arenas::find() noexcept {
  if (has_parents_arenas()) return nullptr;
  helper_arena* const found = current_.load(std::memory_order_acquire);
  if (found != nullptr && !found->team().failed()) return found;
  const std::unique_lock turn(making_, std::try_to_lock);
  if (!turn) return nullptr;
  try {
    return make();
  } catch (...) {
    return nullptr;  // the next call tries again
  }
}

helper_arena* helper_arenas::make() {
  helper_arena* const latest = made_.empty() ? nullptr : made_.back().get();
  if (latest != nullptr && !latest->team().failed()) return latest;
  unsigned unused = nobody;
  first_user.compare_exchange_strong(unused, detail::fork_generation(), std::memory_order_relaxed);
  if (!share_) share_.emplace(helpers_);
  if (share_->threads() == 0 || made_.size() == arenas_max) return nullptr;
  made_.reserve(made_.size() + 1);
  std::unique_ptr<helper_arena> idle = idle_arenas::of_process().take(share_->threads());
  made_.push_back(idle ? std::move(idle) : std::make_unique<helper_arena>(share_->threads()));
  current_.store(made_.back().get(), std::memory_order_release);
  return made_.back().get();
}

}  // namespace shale::parallel
