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

// What a thread keeps at hand: so little that threads with blocks of every size do not hold much
// more than they use, and always the block that it freed last.
constexpr std::size_t thread_bytes_kept = std::size_t{512} << 10;

// What a thread allocates and frees before it says so: the pool's counts are everybody's.
constexpr std::int64_t settled_bytes = std::int64_t{1} << 20;

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::size_t system_bytes(std::size_t bytes) noexcept {
  return align_up(std::max<std::size_t>(bytes, 1), block_alignment);
}

void raise(std::atomic<std::int64_t>& peak, std::int64_t to) noexcept {
  std::int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < to && !peak.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
  }
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
  void* block = serve(route, bytes, alignment);
  if (block == nullptr) {
    trim();
    block = serve(route, bytes, alignment);
  }
  if (block == nullptr) {
    const pool_statistics now = statistics();
    const std::size_t limit = limit_bytes();
    throw error(
        errc::out_of_memory, "no memory for a block",
        {fmt::format("wanted {} bytes; {} bytes are live in {} blocks", bytes, now.live_bytes,
                     now.live_blocks),
         limit != 0 ? fmt::format("the pool's limit is {} bytes, of which it holds {}{}", limit,
                                  now.mapped_bytes,
                                  now.reserved_bytes != 0
                                      ? fmt::format(", and {} are set aside", now.reserved_bytes)
                                      : "")
                    : "the pool has no limit; the system had no more"});
  }
  unpoison(block, bytes);
  return block;
}

void* pool_state::serve(block_route route, std::size_t bytes, std::size_t alignment) noexcept {
  switch (route) {
    case block_route::system:
      return allocate_small(bytes, alignment);
    case block_route::magazine:
      return allocate_class(class_of(bytes));
    case block_route::heap:
      return allocate_large(segments_, bytes, alignment);
    case block_route::dedicated:
      break;
  }
  return allocate_large(mappings_, bytes, alignment);
}

void* pool_state::allocate_small(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t rounded = system_bytes(bytes);
  if (!quota_.take(rounded)) return nullptr;
  void* address = nullptr;
  if (::posix_memalign(&address, std::max(alignment, block_alignment), rounded) == 0) {
    count_in(rounded);
    return address;
  }
  quota_.give(rounded);
  return nullptr;
}

void* pool_state::allocate_large(segment_heap& from, std::size_t bytes,
                                 std::size_t alignment) noexcept {
  const std::lock_guard lock(central_);
  const auto [found, mapped] = from.allocate(bytes, alignment, pool_clock::now());
  if (found == nullptr) return nullptr;
  (mapped ? misses_ : hits_).fetch_add(1, std::memory_order_relaxed);
  count_in(found->bytes);
  return found->address;
}

void* pool_state::allocate_class(std::size_t size_class) noexcept {
  const std::size_t bytes = class_bytes(size_class);
  thread_magazines* const mine = magazines_of_this_thread(*this);
  if (mine == nullptr) {
    const std::lock_guard lock(central_);
    const auto [found, mapped] = segments_.allocate(bytes, natural_alignment, pool_clock::now());
    if (found == nullptr) return nullptr;
    (mapped ? misses_ : hits_).fetch_add(1, std::memory_order_relaxed);
    count_in(bytes);
    return found->address;
  }
  const std::lock_guard lock(mine->lock);
  mine->used = true;
  auto& magazine = mine->classes[size_class];
  void* block = nullptr;
  if (magazine.count == 0) {
    block = refill(*mine, size_class);
    if (block == nullptr) return nullptr;
  } else {
    block = magazine.blocks[--magazine.count];
    mine->bytes -= bytes;
    ++mine->hits;
  }
  count(*mine, 1, bytes);
  return block;
}

// One block for the caller; and the more for the magazine the more often it was found empty, as far
// as that needs no new memory.
void* pool_state::refill(thread_magazines& of, std::size_t size_class) noexcept {
  auto& into = of.classes[size_class];
  const std::size_t bytes = class_bytes(size_class);
  const std::lock_guard lock(central_);
  const auto [first, mapped] = segments_.allocate(bytes, natural_alignment, pool_clock::now());
  if (first == nullptr) return nullptr;
  if (mapped) misses_.fetch_add(1, std::memory_order_relaxed);
  else ++of.hits;
  while (into.count < into.refill && of.bytes + bytes <= thread_bytes_kept) {
    const auto* const more = segments_.reuse(bytes, natural_alignment);
    if (more == nullptr) break;
    into.blocks[into.count++] = more->address;
    of.bytes += bytes;
  }
  const auto most = static_cast<std::uint32_t>(magazine_blocks(size_class) / 2);
  into.refill = std::min(most, 2 * into.refill + 1);
  return first->address;
}

void pool_state::count_in(std::size_t bytes) noexcept {
  live_blocks_.fetch_add(1, std::memory_order_relaxed);
  const auto more = static_cast<std::int64_t>(bytes);
  raise(peak_live_bytes_, live_bytes_.fetch_add(more, std::memory_order_relaxed) + more);
}

// What a thread did with the block happens before the pool is found to be clear.
void pool_state::count_out(std::size_t bytes) noexcept {
  live_blocks_.fetch_sub(1, std::memory_order_relaxed);
  live_bytes_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_release);
}

void pool_state::count(thread_magazines& of, std::int64_t blocks, std::size_t bytes) noexcept {
  of.live_blocks += blocks;
  of.live_bytes += blocks * static_cast<std::int64_t>(bytes);
  of.peak_live_bytes =
      std::max(of.peak_live_bytes, live_bytes_.load(std::memory_order_relaxed) + of.live_bytes);
  if (std::abs(of.live_bytes) > settled_bytes) settle(of);
}

void pool_state::settle(thread_magazines& of) noexcept {
  live_bytes_.fetch_add(of.live_bytes, std::memory_order_acq_rel);
  raise(peak_live_bytes_, of.peak_live_bytes);
  of.live_bytes = 0;
}

// ---- deallocation -------------------------------------------------------------------------------

void pool_state::deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
  const block_route route = route_of(bytes, alignment);
  switch (route) {
    case block_route::system:
      std::free(address);
      quota_.give(system_bytes(bytes));
      count_out(system_bytes(bytes));
      return;
    case block_route::magazine:
      free_class(address, class_of(bytes));
      break;
    case block_route::heap:
    case block_route::dedicated: {
      const std::lock_guard lock(central_);
      segment_heap& to = route == block_route::heap ? segments_ : mappings_;
      auto& block = to.find(address);
      count_out(block.bytes);
      to.free(block, backing::dirty, pool_clock::now());
    }
  }
  if (tended_ == tending::by_housekeeper) mind_idle_memory();
}

void pool_state::free_class(void* address, std::size_t size_class) noexcept {
  const std::size_t bytes = class_bytes(size_class);
  poison(address, bytes);
  thread_magazines* const mine = magazines_of_this_thread(*this);
  if (mine == nullptr) {
    const std::lock_guard lock(central_);
    count_out(bytes);
    segments_.free(segments_.find(address), backing::dirty, pool_clock::now());
    return;
  }
  const std::lock_guard lock(mine->lock);
  mine->used = true;
  count(*mine, -1, bytes);
  auto& magazine = mine->classes[size_class];
  if (magazine.count == magazine_blocks(size_class) || mine->bytes + bytes > thread_bytes_kept)
    make_room(*mine, size_class);
  magazine.blocks[magazine.count++] = address;
  mine->bytes += bytes;
}

// For one more block of a class: half of its magazine goes if that is full, and other classes in
// turn as long as the thread keeps too much.
void pool_state::make_room(thread_magazines& of, std::size_t size_class) noexcept {
  auto& wanted = of.classes[size_class];
  const std::size_t bytes = class_bytes(size_class);
  const std::lock_guard lock(central_);
  const auto now = pool_clock::now();
  if (wanted.count == magazine_blocks(size_class)) give_back(of, size_class, wanted.count / 2, now);
  for (std::size_t i = 0; i < size_classes && of.bytes + bytes > thread_bytes_kept; ++i) {
    const std::size_t other = of.next_class;
    of.next_class = (of.next_class + 1) % size_classes;
    if (other != size_class) give_back(of, other, of.classes[other].count, now);
  }
  if (of.bytes + bytes > thread_bytes_kept) give_back(of, size_class, (wanted.count + 1) / 2, now);
}

// The oldest blocks: what was freed last is in the processor's caches.
void pool_state::give_back(thread_magazines& of, std::size_t size_class, std::uint32_t blocks,
                           pool_clock::time_point now) noexcept {
  auto& magazine = of.classes[size_class];
  for (std::uint32_t i = 0; i < blocks; ++i)
    segments_.free(segments_.find(magazine.blocks[i]), backing::dirty, now);
  std::move(magazine.blocks.begin() + blocks, magazine.blocks.begin() + magazine.count,
            magazine.blocks.begin());
  magazine.count -= blocks;
  magazine.refill /= 2;
  of.bytes -= blocks * class_bytes(size_class);
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
  settle(gone);
  hits_.fetch_add(gone.hits, std::memory_order_relaxed);
  live_blocks_.fetch_add(gone.live_blocks, std::memory_order_relaxed);
  std::erase_if(magazines_, [&](const auto& each) { return each.get() == &gone; });
}

void pool_state::empty_locked(thread_magazines& of) noexcept {
  const std::lock_guard lock(of.lock);
  const std::lock_guard central(central_);
  const auto now = pool_clock::now();
  for (std::size_t each = 0; each < size_classes; ++each) {
    give_back(of, each, of.classes[each].count, now);
    of.classes[each].refill = 0;
  }
}

// What all threads and the pool count, at one moment.
pool_state::totals pool_state::count_all() const noexcept {
  const std::lock_guard lock(threads_);
  for (const auto& each : magazines_) each->lock.lock();
  totals sum{.hits = hits_.load(std::memory_order_relaxed),
             .live_blocks = live_blocks_.load(std::memory_order_relaxed),
             .live_bytes = live_bytes_.load(std::memory_order_acquire),
             .peak_live_bytes = peak_live_bytes_.load(std::memory_order_relaxed)};
  for (const auto& each : magazines_) {
    sum.cached_bytes += each->bytes;
    sum.hits += each->hits;
    sum.live_blocks += each->live_blocks;
    sum.live_bytes += each->live_bytes;
    sum.peak_live_bytes = std::max(sum.peak_live_bytes, each->peak_live_bytes);
    each->lock.unlock();
  }
  return sum;
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
  return segments_.trim() + mappings_.trim();
}

void pool_state::set_limit_bytes(std::size_t bytes) noexcept {
  quota_.set_limit_bytes(bytes);
  if (bytes != 0 && quota_.held_bytes() > bytes) trim();
}

std::size_t pool_state::reserve(std::size_t bytes) noexcept {
  std::size_t taken = quota_.take_up_to(bytes);
  if (taken < bytes) {
    trim();
    taken += quota_.take_up_to(bytes - taken);
  }
  reserved_bytes_.fetch_add(taken, std::memory_order_relaxed);
  return taken;
}

void pool_state::end_reservation(std::size_t bytes) noexcept {
  reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  quota_.give(bytes);
}

std::size_t pool_state::idle_bytes_allowed() const noexcept {
  const std::int64_t live = live_bytes_.load(std::memory_order_relaxed);
  return std::max(static_cast<std::size_t>(std::max<std::int64_t>(live, 0)) / 2, idle_bytes_kept);
}

std::size_t pool_state::idle_bytes() const {
  const std::size_t in_magazines = count_all().cached_bytes;
  const std::lock_guard lock(central_);
  return segments_.dirty_bytes() + mappings_.dirty_bytes() + in_magazines;
}

// The oldest first, until no more is idle than may be.
void pool_state::lower_idle_bytes() noexcept {
  for (segment_heap* const each : {&mappings_, &segments_}) {
    while (idle_bytes() > idle_bytes_allowed()) {
      const std::lock_guard lock(central_);
      if (!each->age_oldest()) break;
    }
  }
}

bool pool_state::tend(pool_clock::time_point now) noexcept {
  const std::lock_guard chores(chores_);
  empty_magazines(which_threads::unused);
  for (segment_heap* const each : {&segments_, &mappings_}) {
    std::byte* cursor = nullptr;
    for (bool more = true; more;) {
      const std::lock_guard lock(central_);
      more = each->age(cursor, now, ages_);
    }
  }
  if (idle_bytes() <= idle_bytes_allowed()) {
    over_since_.reset();
  } else {
    if (!over_since_) over_since_ = now;
    if (now - *over_since_ >= over_allowed) lower_idle_bytes();
  }
  if (count_all().cached_bytes > 0) return true;
  const std::lock_guard lock(central_);
  return segments_.is_ageing() || mappings_.is_ageing();
}

// ---- looking ------------------------------------------------------------------------------------

pool_statistics pool_state::statistics() const {
  const auto bytes = [](std::int64_t count) {
    return static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  };
  const totals all = count_all();
  const std::lock_guard lock(central_);
  pool_statistics now;
  now.live_bytes = bytes(all.live_bytes);
  now.live_blocks = bytes(all.live_blocks);
  now.peak_live_bytes = std::max(bytes(all.peak_live_bytes), now.live_bytes);
  // Blocks on their way in or out of another thread may be counted on one side only.
  now.reserved_bytes = reserved_bytes_.load(std::memory_order_relaxed);
  const std::size_t held = quota_.held_bytes();
  now.mapped_bytes = std::max(held - std::min(now.reserved_bytes, held), now.live_bytes);
  now.cached_bytes = now.mapped_bytes - now.live_bytes;
  now.idle_bytes = segments_.dirty_bytes() + mappings_.dirty_bytes() + all.cached_bytes;
  now.largest_free_bytes = std::max(segments_.largest_free_bytes(), mappings_.largest_free_bytes());
  now.hits = all.hits;
  now.misses = misses_.load(std::memory_order_relaxed);
  now.splits = segments_.splits();
  now.coalesces = segments_.coalesces();
  return now;
}

bool pool_state::all_clear() const noexcept { return count_all().live_bytes == 0; }

void pool_state::reset_peak() noexcept {
  const std::lock_guard lock(threads_);
  for (auto& each : magazines_) {
    const std::lock_guard theirs(each->lock);
    settle(*each);
    each->peak_live_bytes = 0;
  }
  peak_live_bytes_.store(live_bytes_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

bool pool_state::is_consistent() const {
  const std::lock_guard lock(central_);
  return segments_.is_consistent() && mappings_.is_consistent();
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
