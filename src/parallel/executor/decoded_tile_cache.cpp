#include "parallel/executor/decoded_tile_cache.hpp"

#include <algorithm>
#include <mutex>

#include "shale/memory_pool.hpp"

namespace shale::parallel {

namespace {

// Tiles may take an eighth of the budget while no call needs it, and an eighth of the limit of the
// default pool.
constexpr std::size_t memory_divisor = 8;

// 0 if the default pool has no limit, or if it could not be made: then no tile lies in it.
std::size_t limit_of_default_pool() noexcept {
  try {
    return memory_pool::default_pool().limit_bytes();
  } catch (...) {
    return 0;
  }
}

std::atomic<std::uint64_t> owners = 0;

// All objects of this process, so that owners find their tiles. The lock is taken before that of
// any of them.
constinit detail::fork_safe_mutex list_mutex;
decoded_tile_cache* first_in_list = nullptr;

std::size_t bytes_kept_by(const tensor& tile) noexcept {
  return tile.storage().size_bytes() + decoded_tile_cache::overhead_bytes;
}

}  // namespace

tile_owner::tile_owner() noexcept : number_(owners.fetch_add(1, std::memory_order_relaxed) + 1) {}

tile_owner::~tile_owner() {
  decoded_tile_cache::dropped_entries dropped;
  const std::lock_guard lock(list_mutex);
  for (decoded_tile_cache* tiles = first_in_list; tiles != nullptr; tiles = tiles->next_)
    tiles->drop_owner(number_, dropped);
}

decoded_tile_cache::decoded_tile_cache(memory_tokens& tokens) noexcept
    : tokens_(tokens), share_bytes_(tokens.budget_bytes() / memory_divisor) {
  const std::lock_guard lock(list_mutex);
  next_ = first_in_list;
  first_in_list = this;
}

decoded_tile_cache::~decoded_tile_cache() {
  {
    const std::lock_guard lock(list_mutex);
    decoded_tile_cache** link = &first_in_list;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
  }
  clear();
}

std::size_t decoded_tile_cache::capacity_bytes() const noexcept {
  const std::size_t limit = limit_of_default_pool();
  return limit == 0 ? share_bytes_ : std::min(share_bytes_, limit / memory_divisor);
}

std::size_t decoded_tile_cache::held_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

void decoded_tile_cache::clear() noexcept {
  dropped_entries dropped;
  const std::lock_guard lock(mutex_);
  while (!entries_.empty()) drop(entries_.begin(), dropped);
}

void decoded_tile_cache::load_state::end(step outcome) noexcept {
  current.store(outcome, std::memory_order_release);
  current.notify_all();
}

decoded_tile_cache::turn decoded_tile_cache::begin(const stored_tile& wanted) {
  std::shared_ptr<load_state> other;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(wanted);
    if (found == entries_.end()) return {.running = add(wanted)};
    entry& known = found->second;
    if (known.values) {
      ages_.splice(ages_.end(), ages_, known.age);
      return {.values = known.values};
    }
    if (known.running->process != detail::fork_generation()) {  // decoded.5
      known.running = std::make_shared<load_state>();
      return {.running = known.running};
    }
    other = known.running;
  }
  other->current.wait(load_state::step::running, std::memory_order_acquire);
  return {.values = other->values};  // nothing if it has failed
}

// Enters a tile that the calling thread is about to load. An entry without an age would stay for
// ever. So the age is inserted first, and removed again if there is no memory for the entry.
std::shared_ptr<decoded_tile_cache::load_state> decoded_tile_cache::add(const stored_tile& wanted) {
  // The remaining quarter is for the memory block, the text of the form, and the allocator's own
  // data.
  static_assert(sizeof(entries::value_type) + sizeof(void*) <= overhead_bytes * 3 / 4);
  auto running = std::make_shared<load_state>();
  const auto age = ages_.insert(ages_.end(), nullptr);
  try {
    const auto at = entries_.emplace(wanted, entry{.running = running, .age = age}).first;
    *age = &at->first;
  } catch (...) {
    ages_.erase(age);
    throw;
  }
  return running;
}

// If the entry is gone, its owner was destroyed or the tiles were cleared. The tile is not kept
// then.
void decoded_tile_cache::finish(const stored_tile& wanted, load_state& running,
                                const tensor& values) noexcept {
  {
    dropped_entries dropped;
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(wanted);
    if (found != entries_.end() && found->second.running.get() == &running) {
      const std::size_t bytes = bytes_kept_by(values);
      if (make_room(bytes, dropped)) {
        tokens_.take(bytes);
        held_bytes_ += bytes;
        found->second.values = values;
        found->second.running = nullptr;
      } else {
        drop(found, dropped);
      }
    }
  }
  running.values = values;
  running.end(load_state::step::loaded);
}

void decoded_tile_cache::give_up(const stored_tile& wanted, load_state& running) noexcept {
  {
    dropped_entries dropped;
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(wanted);
    if (found != entries_.end() && found->second.running.get() == &running) drop(found, dropped);
  }
  running.end(load_state::step::failed);
}

// Drops loaded tiles until there is room for a tile of that size (decoded.3). Returns whether there
// is.
bool decoded_tile_cache::make_room(std::size_t bytes, dropped_entries& dropped) noexcept {
  const std::size_t capacity = capacity_bytes();
  if (bytes > capacity || bytes > tokens_.left_bytes() + held_bytes_) return false;
  const auto has_room = [&] {
    return held_bytes_ <= capacity - bytes && tokens_.left_bytes() >= bytes;
  };
  for (auto age = ages_.begin(); age != ages_.end() && !has_room();) {
    const auto at = entries_.find(**age);
    ++age;
    if (at->second.values) drop(at, dropped);
  }
  return has_room();
}

void decoded_tile_cache::drop(entries::iterator at, dropped_entries& dropped) noexcept {
  if (at->second.values) {
    const std::size_t bytes = bytes_kept_by(*at->second.values);
    held_bytes_ -= bytes;
    tokens_.give(bytes);
  }
  ages_.erase(at->second.age);
  dropped.insert(entries_.extract(at));
}

void decoded_tile_cache::drop_owner(std::uint64_t owner, dropped_entries& dropped) noexcept {
  const std::lock_guard lock(mutex_);
  auto at = entries_.lower_bound(stored_tile{.owner = owner});  // the first of this owner
  while (at != entries_.end() && at->first.owner == owner) drop(at++, dropped);
}

}  // namespace shale::parallel
