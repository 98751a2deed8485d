#include "storage/pool/pool_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "shale/error.hpp"
#include "storage/pages.hpp"
#include "storage/pool/housekeeper.hpp"
#include "storage/pool/poison.hpp"

namespace shale::detail {

namespace {

// Idle memory that a pool may keep whatever is live.
constexpr std::size_t idle_bytes_kept = std::size_t{64} << 20;

// How long more may be idle before it is given back out of turn.
constexpr std::chrono::milliseconds over_allowed{1000};

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::size_t system_bytes(std::size_t bytes) noexcept {
  return align_up(std::max<std::size_t>(bytes, 1), block_alignment);
}

}  // namespace

pool_state::pool_state(const pool_options& options, tending who)
    : id_(next_id()), tended_(who), quota_(options.limit_bytes) {
  join_pools(*this);
}

pool_state::~pool_state() {
  leave_pools(*this);  // after this no ending thread and no housekeeper looks here
  for (auto& each : magazines_) empty_locked(*each);
}

// ---- allocation ---------------------------------------------------------------------------------

void* pool_state::allocate(std::size_t bytes, std::size_t alignment) {
  const block_route route = route_of(bytes, alignment);
  served block = serve(route, bytes, alignment);
  if (block.address == nullptr) {
    trim();
    block = serve(route, bytes, alignment);
  }
  if (block.address == nullptr) {
    const std::size_t limit = quota_.limit_bytes();
    throw error(
        errc::out_of_memory, "no memory for a block",
        {fmt::format("wanted {} bytes; {} bytes are live in {} blocks", bytes,
                     live_bytes_.load(std::memory_order_relaxed),
                     live_blocks_.load(std::memory_order_relaxed) + count_threads().live_blocks),
         limit != 0 ? fmt::format("the pool's limit is {} bytes, of which it holds {}", limit,
                                  quota_.held_bytes())
                    : "the pool has no limit; the system had no more"});
  }
  count_in(block.bytes);
  unpoison(block.address, bytes);
  return block.address;
}

pool_state::served pool_state::serve(block_route route, std::size_t bytes,
                                     std::size_t alignment) noexcept {
  switch (route) {
    case block_route::system: {
      const std::size_t rounded = system_bytes(bytes);
      if (!quota_.take(rounded)) return {};
      void* address = nullptr;
      if (::posix_memalign(&address, std::max(alignment, block_alignment), rounded) == 0) {
        live_blocks_.fetch_add(1, std::memory_order_relaxed);
        return {address, rounded, false};
      }
      quota_.give(rounded);
      return {};
    }
    case block_route::slab:
      return serve_class(class_of(bytes));
    case block_route::heap:
    case block_route::dedicated:
      break;
  }
  const std::lock_guard lock(central_);
  segment_heap& from = route == block_route::heap ? segments_ : mappings_;
  const auto [found, mapped] = from.allocate(bytes, alignment, pool_clock::now());
  if (found == nullptr) return {};
  live_blocks_.fetch_add(1, std::memory_order_relaxed);
  (mapped ? misses_ : hits_).fetch_add(1, std::memory_order_relaxed);
  return {found->address, found->bytes, mapped};
}

pool_state::served pool_state::serve_class(std::size_t size_class) noexcept {
  thread_magazines* const mine = magazines_of_this_thread(*this);
  if (mine == nullptr) {
    const std::lock_guard lock(central_);
    const auto found = slabs_.allocate(size_class, pool_clock::now());
    if (found.address == nullptr) return {};
    live_blocks_.fetch_add(1, std::memory_order_relaxed);
    (found.mapped ? misses_ : hits_).fetch_add(1, std::memory_order_relaxed);
    return {found.address, class_bytes(size_class), found.mapped};
  }
  const std::lock_guard lock(mine->lock);
  mine->used = true;
  auto& magazine = mine->classes[size_class];
  served block;
  if (magazine.count == 0) {
    block = refill(*mine, size_class);
    if (block.address == nullptr) return {};
  } else {
    block = {magazine.blocks[--magazine.count], class_bytes(size_class), false};
    mine->bytes -= block.bytes;
  }
  ++mine->live_blocks;
  if (block.mapped) misses_.fetch_add(1, std::memory_order_relaxed);
  else ++mine->hits;
  return block;
}

// One block for the caller, and up to half a magazine more, as far as that needs no new memory.
pool_state::served pool_state::refill(thread_magazines& of, std::size_t size_class) noexcept {
  const std::lock_guard lock(central_);
  auto& into = of.classes[size_class];
  const auto now = pool_clock::now();
  const auto first = slabs_.allocate(size_class, now);
  if (first.address == nullptr) return {};
  const std::size_t bytes = class_bytes(size_class);
  while (into.count + 1 < magazine_blocks(size_class) / 2 && slabs_.has_free(size_class)) {
    into.blocks[into.count++] = slabs_.allocate(size_class, now).address;
    of.bytes += bytes;
  }
  return {first.address, bytes, first.mapped};
}

void pool_state::count_in(std::size_t bytes) noexcept {
  const std::size_t live = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t peak = peak_live_bytes_.load(std::memory_order_relaxed);
  while (peak < live &&
         !peak_live_bytes_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

// What a thread did with the block happens before the pool is found to be clear.
void pool_state::count_out(std::size_t bytes) noexcept {
  live_bytes_.fetch_sub(bytes, std::memory_order_release);
}

// ---- deallocation -------------------------------------------------------------------------------

void pool_state::deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
  const block_route route = route_of(bytes, alignment);
  switch (route) {
    case block_route::system:
      std::free(address);
      quota_.give(system_bytes(bytes));
      live_blocks_.fetch_sub(1, std::memory_order_relaxed);
      count_out(system_bytes(bytes));
      return;
    case block_route::slab:
      count_out(class_bytes(class_of(bytes)));
      take_back_class(address, class_of(bytes));
      break;
    case block_route::heap:
    case block_route::dedicated: {
      const std::lock_guard lock(central_);
      segment_heap& to = route == block_route::heap ? segments_ : mappings_;
      auto& block = to.find(address);
      live_blocks_.fetch_sub(1, std::memory_order_relaxed);
      count_out(block.bytes);
      to.free(block, backing::dirty, pool_clock::now());
    }
  }
  if (tended_ == tending::by_housekeeper) mind_idle_memory();
}

void pool_state::take_back_class(void* address, std::size_t size_class) noexcept {
  const std::size_t bytes = class_bytes(size_class);
  poison(address, bytes);
  thread_magazines* const mine = magazines_of_this_thread(*this);
  if (mine == nullptr) {
    const std::lock_guard lock(central_);
    live_blocks_.fetch_sub(1, std::memory_order_relaxed);
    slabs_.free(address, pool_clock::now());
    return;
  }
  const std::lock_guard lock(mine->lock);
  mine->used = true;
  --mine->live_blocks;
  auto& magazine = mine->classes[size_class];
  const std::size_t room = magazine_blocks(size_class);
  if (magazine.count == room) {
    // The older half goes: what was freed last is in the processor's caches.
    const auto leaving = static_cast<std::uint32_t>(room / 2);
    const std::lock_guard central(central_);
    const auto now = pool_clock::now();
    for (std::uint32_t i = 0; i < leaving; ++i) slabs_.free(magazine.blocks[i], now);
    std::move(magazine.blocks.begin() + leaving, magazine.blocks.begin() + magazine.count,
              magazine.blocks.begin());
    magazine.count -= leaving;
    mine->bytes -= leaving * bytes;
  }
  magazine.blocks[magazine.count++] = address;
  mine->bytes += bytes;
}

// ---- threads ------------------------------------------------------------------------------------

thread_magazines& pool_state::add_thread() {
  const std::lock_guard lock(threads_);
  magazines_.push_back(std::make_unique<thread_magazines>());
  return *magazines_.back();
}

void pool_state::remove_thread(thread_magazines& gone) noexcept {
  const std::lock_guard lock(threads_);
  empty_locked(gone);
  hits_.fetch_add(gone.hits, std::memory_order_relaxed);
  live_blocks_.fetch_add(gone.live_blocks, std::memory_order_relaxed);
  std::erase_if(magazines_, [&](const auto& each) { return each.get() == &gone; });
}

void pool_state::empty_locked(thread_magazines& of) noexcept {
  const std::lock_guard lock(of.lock);
  const std::lock_guard central(central_);
  const auto now = pool_clock::now();
  for (std::size_t index = 0; index < size_classes; ++index) {
    auto& magazine = of.classes[index];
    for (std::uint32_t i = 0; i < magazine.count; ++i) slabs_.free(magazine.blocks[i], now);
    magazine.count = 0;
  }
  of.bytes = 0;
}

pool_state::thread_counts pool_state::count_threads() const {
  thread_counts total;
  const std::lock_guard lock(threads_);
  for (const auto& each : magazines_) {
    const std::lock_guard theirs(each->lock);
    total.bytes += each->bytes;
    total.hits += each->hits;
    total.live_blocks += each->live_blocks;
  }
  return total;
}

// Of all threads, or of those that have not used theirs since the last tick.
void pool_state::empty_magazines(which_threads which) noexcept {
  const std::lock_guard lock(threads_);
  for (auto& each : magazines_) {
    bool used = false;
    {
      const std::lock_guard mine(each->lock);
      std::swap(used, each->used);
    }
    if (which == which_threads::all || !used) empty_locked(*each);
  }
}

// ---- giving back --------------------------------------------------------------------------------

std::size_t pool_state::trim() noexcept {
  const std::lock_guard chores(chores_);
  empty_magazines(which_threads::all);
  const std::lock_guard lock(central_);
  slabs_.drop_idle();
  return segments_.trim() + mappings_.trim();
}

void pool_state::set_limit_bytes(std::size_t bytes) noexcept {
  quota_.set_limit_bytes(bytes);
  if (bytes != 0 && quota_.held_bytes() > bytes) trim();
}

void pool_state::do_chores(segment_heap& in, pool_clock::time_point now) noexcept {
  std::byte* cursor = nullptr;
  for (;;) {
    std::optional<segment_heap::chore> next;
    {
      const std::lock_guard lock(central_);
      next = in.next_chore(cursor, now, ages_);
    }
    if (!next) return;
    segment_heap::perform(*next);
    const std::lock_guard lock(central_);
    in.finish(*next);
  }
}

std::size_t pool_state::idle_bytes_allowed() const noexcept {
  return std::max(live_bytes_.load(std::memory_order_relaxed) / 2, idle_bytes_kept);
}

std::size_t pool_state::idle_bytes() const {
  const std::size_t in_magazines = count_threads().bytes;
  const std::lock_guard lock(central_);
  return segments_.dirty_bytes() + mappings_.dirty_bytes() + slabs_.dirty_bytes() + in_magazines;
}

// The oldest first, until no more is idle than may be.
void pool_state::lower_idle_bytes() noexcept {
  for (segment_heap* const each : {&mappings_, &segments_}) {
    while (idle_bytes() > idle_bytes_allowed()) {
      std::optional<segment_heap::chore> next;
      {
        const std::lock_guard lock(central_);
        next = each->oldest_chore();
      }
      if (!next) break;
      segment_heap::perform(*next);
      const std::lock_guard lock(central_);
      each->finish(*next);
    }
  }
  if (idle_bytes() <= idle_bytes_allowed()) return;
  empty_magazines(which_threads::all);
  const std::lock_guard lock(central_);
  slabs_.drop_idle();
}

bool pool_state::tend(pool_clock::time_point now) noexcept {
  const std::lock_guard chores(chores_);
  empty_magazines(which_threads::unused);
  do_chores(segments_, now);
  do_chores(mappings_, now);
  {
    const std::lock_guard lock(central_);
    slabs_.decay(now, ages_);
  }
  if (idle_bytes() <= idle_bytes_allowed()) {
    over_since_.reset();
  } else {
    if (!over_since_) over_since_ = now;
    if (now - *over_since_ >= over_allowed) lower_idle_bytes();
  }
  if (count_threads().bytes > 0) return true;
  const std::lock_guard lock(central_);
  return segments_.is_ageing() || mappings_.is_ageing() || slabs_.is_ageing();
}

// ---- looking ------------------------------------------------------------------------------------

pool_statistics pool_state::statistics() const {
  pool_statistics now;
  const thread_counts threads = count_threads();
  const std::lock_guard lock(central_);
  now.live_bytes = live_bytes_.load(std::memory_order_acquire);
  now.live_blocks = static_cast<std::size_t>(std::max<std::int64_t>(
      0, live_blocks_.load(std::memory_order_relaxed) + threads.live_blocks));
  now.peak_live_bytes = peak_live_bytes_.load(std::memory_order_relaxed);
  // Blocks on their way in or out of another thread may be counted on one side only.
  now.mapped_bytes = std::max(quota_.held_bytes(), now.live_bytes);
  now.cached_bytes = now.mapped_bytes - now.live_bytes;
  now.idle_bytes =
      segments_.dirty_bytes() + mappings_.dirty_bytes() + slabs_.dirty_bytes() + threads.bytes;
  now.largest_free_bytes = std::max({segments_.largest_free_bytes(), mappings_.largest_free_bytes(),
                                     slabs_.largest_free_bytes()});
  now.hits = hits_.load(std::memory_order_relaxed) + threads.hits;
  now.misses = misses_.load(std::memory_order_relaxed);
  now.splits = segments_.splits();
  now.coalesces = segments_.coalesces();
  return now;
}

void pool_state::reset_peak() noexcept {
  peak_live_bytes_.store(live_bytes_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

bool pool_state::is_consistent() const {
  const std::lock_guard lock(central_);
  return segments_.is_consistent() && mappings_.is_consistent() && slabs_.is_consistent();
}

// ---- fork ---------------------------------------------------------------------------------------

void pool_state::lock_all() noexcept {
  chores_.lock();
  threads_.lock();
  for (auto& each : magazines_) each->lock.lock();
  central_.lock();
}

void pool_state::unlock_all() noexcept {
  central_.unlock();
  for (auto each = magazines_.rbegin(); each != magazines_.rend(); ++each) (*each)->lock.unlock();
  threads_.unlock();
  chores_.unlock();
}

}  // namespace shale::detail
