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

// What a thread keeps of blocks of classes when it comes for more, and what it may come to keep in
// between.
constexpr std::size_t thread_bytes_kept = std::size_t{1} << 20;
constexpr std::size_t thread_bytes_max = 2 * thread_bytes_kept;

// The largest block that a thread keeps because it freed it last.
constexpr std::size_t large_bytes_kept = std::size_t{64} << 20;

// By how much more or less a thread keeps before the pool hears of it.
constexpr std::int64_t declared_step = std::int64_t{256} << 10;

// What threads keep is collected before new memory is touched if it comes to this part of what is
// live.
constexpr std::int64_t part_worth_collecting = 32;

// What a thread allocates or frees besides its last block before it says so: the pool's counts are
// everybody's.
constexpr std::int64_t settled_bytes = std::int64_t{4} << 20;

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
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
  empty_caches(which_blocks::all);
}

// ---- allocation ---------------------------------------------------------------------------------

void* pool_state::allocate(std::size_t bytes, std::size_t alignment) {
  const block_request wanted = request_for(bytes, alignment);
  void* block = serve(wanted);
  if (block == nullptr) [[unlikely]] {
    trim();
    block = serve(wanted);
    if (block == nullptr) throw_out_of_memory(bytes);
  }
  unpoison(block, bytes);
  return block;
}

void pool_state::throw_out_of_memory(std::size_t wanted_bytes) const {
  const pool_statistics now = statistics();
  const std::size_t limit = limit_bytes();
  throw error(
      errc::out_of_memory, "no memory for a block",
      {fmt::format("wanted {} bytes; {} bytes are live in {} blocks", wanted_bytes, now.live_bytes,
                   now.live_blocks),
       limit != 0
           ? fmt::format(
                 "the pool's limit is {} bytes, of which it holds {}{}", limit, now.mapped_bytes,
                 now.reserved_bytes != 0 ? fmt::format(", and {} are set aside", now.reserved_bytes)
                                         : "")
           : "the pool has no limit; the system had no more"});
}

void* pool_state::serve(const block_request& wanted) noexcept {
  if (wanted.route == block_route::system) return allocate_small(wanted);
  if (wanted.route == block_route::dedicated) return allocate_from(mappings_, wanted);
  thread_cache* const mine = cache_of_this_thread(*this, id_);
  if (mine == nullptr) return allocate_from(segments_, wanted);
  {
    const std::lock_guard lock(mine->lock);
    if (void* const kept = mine->take(wanted)) {
      ++mine->hits;
      count(*mine, 1, wanted.bytes);
      return kept;
    }
    if (void* const block = fetch(*mine, wanted, memory_wanted::backed)) return block;
  }
  // New memory is touched only when what threads keep does not help.
  if (is_worth_collecting()) empty_caches(which_blocks::all);
  const std::lock_guard lock(mine->lock);
  return fetch(*mine, wanted, memory_wanted::any);
}

void* pool_state::allocate_small(const block_request& wanted) noexcept {
  if (!quota_.take(wanted.bytes)) return nullptr;
  void* address = nullptr;
  if (::posix_memalign(&address, std::max(wanted.alignment, block_alignment), wanted.bytes) == 0) {
    count_in(wanted.bytes);
    return address;
  }
  quota_.give(wanted.bytes);
  return nullptr;
}

void* pool_state::allocate_from(segment_heap& heap, const block_request& wanted) noexcept {
  const std::lock_guard lock(central_);
  const auto [found, mapped] = heap.allocate(wanted.bytes, wanted.alignment, pool_clock::now());
  if (found == nullptr) return nullptr;
  (mapped ? misses_ : hits_).fetch_add(1, std::memory_order_relaxed);
  count_in(wanted.bytes);
  return found->address;
}

// One block for the caller; of a class the more besides the more often the thread had none, as far
// as that needs no new memory. What the thread keeps too much of goes first: it may make the place.
void* pool_state::fetch(thread_cache& of, const block_request& wanted,
                        memory_wanted which) noexcept {
  const std::lock_guard lock(central_);
  if (wanted.route == block_route::heap) give_large_back(of);
  if (of.bytes_of_classes() > thread_bytes_kept) shrink(of, thread_bytes_kept);
  auto* first = segments_.reuse_dirty(wanted.bytes, wanted.alignment);
  bool mapped = false;
  if (first == nullptr && which == memory_wanted::any) {
    const auto got = segments_.allocate(wanted.bytes, wanted.alignment, pool_clock::now());
    first = got.where;
    mapped = got.mapped;
  }
  if (first == nullptr) return nullptr;
  if (mapped) misses_.fetch_add(1, std::memory_order_relaxed);
  else ++of.hits;
  if (wanted.route == block_route::magazine)
    for (auto ahead = of.blocks_ahead(wanted.size_class); ahead > 0; --ahead) {
      if (of.bytes_of_classes() + wanted.bytes > thread_bytes_kept) break;
      auto* const more = segments_.reuse_dirty(wanted.bytes, natural_alignment);
      if (more == nullptr) break;
      of.keep(more->address, wanted);
    }
  declare(of);
  count(of, 1, wanted.bytes);
  return first->address;
}

bool pool_state::is_worth_collecting() const noexcept {
  const std::int64_t kept = declared_bytes_.load(std::memory_order_relaxed);
  return kept > 0 && kept >= live_bytes_.load(std::memory_order_relaxed) / part_worth_collecting;
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

[[gnu::always_inline]] inline void pool_state::count(thread_cache& of, std::int64_t blocks,
                                                     std::size_t bytes) noexcept {
  const auto size = static_cast<std::int64_t>(bytes);
  of.live_blocks += blocks;
  of.live_bytes += blocks * size;
  if (blocks > 0)
    of.peak_live_bytes =
        std::max(of.peak_live_bytes, live_bytes_.load(std::memory_order_relaxed) + of.live_bytes);
  if (std::abs(of.live_bytes) > settled_bytes + size) [[unlikely]]
    settle(of);
}

void pool_state::settle(thread_cache& of) noexcept {
  live_bytes_.fetch_add(of.live_bytes, std::memory_order_acq_rel);
  raise(peak_live_bytes_, of.peak_live_bytes);
  of.live_bytes = 0;
}

// ---- deallocation -------------------------------------------------------------------------------

void pool_state::deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
  const block_request freed = request_for(bytes, alignment);
  if (freed.route == block_route::system) {
    std::free(address);
    quota_.give(freed.bytes);
    count_out(freed.bytes);
    return;
  }
  thread_cache* const mine = freed.route == block_route::dedicated || freed.bytes > large_bytes_kept
                                 ? nullptr
                                 : cache_of_this_thread(*this, id_);
  if (mine != nullptr) {
    poison(address, freed.bytes);
    const std::lock_guard lock(mine->lock);
    count(*mine, -1, freed.bytes);
    if (!mine->has_place(freed) || mine->bytes_of_classes() + freed.bytes > thread_bytes_max)
      make_room(*mine, freed);
    mine->keep(address, freed);
    declare(*mine);
  } else {
    count_out(freed.bytes);
    const std::lock_guard lock(central_);
    auto& to = freed.route == block_route::dedicated ? mappings_ : segments_;
    to.free(to.find(address), backing::dirty, pool_clock::now());
  }
  if (tended_ == tending::by_housekeeper) mind_idle_memory();
}

// ---- what threads keep --------------------------------------------------------------------------

void pool_state::make_room(thread_cache& of, const block_request& freed) noexcept {
  const std::lock_guard lock(central_);
  if (freed.route == block_route::heap) return give_large_back(of);
  if (!of.has_place(freed)) give_half_back(of, freed.size_class);
  shrink(of, thread_bytes_kept);
}

// Of the class of which most is kept, until no more than so much is kept of all.
void pool_state::shrink(thread_cache& of, std::size_t bytes) noexcept {
  while (of.bytes_of_classes() > bytes) give_half_back(of, of.fullest_class());
}

void pool_state::give_half_back(thread_cache& of, std::size_t size_class) noexcept {
  const auto now = pool_clock::now();
  of.drop(size_class, (of.blocks_of(size_class) + 1) / 2,
          [&](void* block) { give_back(block, now); });
}

void pool_state::give_large_back(thread_cache& of) noexcept {
  if (void* const block = of.drop_large()) give_back(block, pool_clock::now());
}

void pool_state::give_back(void* block, pool_clock::time_point now) noexcept {
  segments_.free(segments_.find(block), backing::dirty, now);
}

void pool_state::empty(thread_cache& of, which_blocks which) noexcept {
  const std::lock_guard lock(central_);
  of.drop_unused([&, now = pool_clock::now()](void* block) { give_back(block, now); });
  if (which == which_blocks::all) {
    give_large_back(of);
    shrink(of, 0);
  }
  declare(of);
}

// Not every block, or all processors would write the same number all the time.
void pool_state::declare(thread_cache& of) noexcept {
  const auto more =
      static_cast<std::int64_t>(of.bytes()) - static_cast<std::int64_t>(of.declared_bytes);
  if (more < declared_step && (more > -declared_step || of.bytes() > 0)) [[likely]]
    return;
  declared_bytes_.fetch_add(more, std::memory_order_relaxed);
  of.declared_bytes = of.bytes();
}

// ---- threads ------------------------------------------------------------------------------------

void pool_state::remove_thread(thread_cache& gone) noexcept {
  thread_caches::hold all(caches_);
  empty(gone, which_blocks::all);
  settle(gone);
  hits_.fetch_add(gone.hits, std::memory_order_relaxed);
  live_blocks_.fetch_add(gone.live_blocks, std::memory_order_relaxed);
  all.remove(gone);
}

// What all threads and the pool count, at one moment.
pool_state::totals pool_state::count_all() const noexcept {
  const thread_caches::hold all(caches_);
  totals sum{.hits = hits_.load(std::memory_order_relaxed),
             .live_blocks = live_blocks_.load(std::memory_order_relaxed),
             .live_bytes = live_bytes_.load(std::memory_order_acquire),
             .peak_live_bytes = peak_live_bytes_.load(std::memory_order_relaxed)};
  for (const auto& each : all) {
    sum.cached_bytes += each->bytes();
    sum.hits += each->hits;
    sum.live_blocks += each->live_blocks;
    sum.live_bytes += each->live_bytes;
    sum.peak_live_bytes = std::max(sum.peak_live_bytes, each->peak_live_bytes);
  }
  return sum;
}

void pool_state::empty_caches(which_blocks which) noexcept {
  for (const thread_caches::hold all(caches_); const auto& each : all) empty(*each, which);
}

// ---- giving back --------------------------------------------------------------------------------

std::size_t pool_state::trim() noexcept {
  const std::lock_guard chores(chores_);
  empty_caches(which_blocks::all);
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
  const std::size_t in_caches = count_all().cached_bytes;
  const std::lock_guard lock(central_);
  return segments_.dirty_bytes() + mappings_.dirty_bytes() + in_caches;
}

// What threads keep, then the oldest first, until no more is idle than may be.
void pool_state::lower_idle_bytes() noexcept {
  empty_caches(which_blocks::all);
  for (segment_heap* const each : {&mappings_, &segments_}) {
    while (idle_bytes() > idle_bytes_allowed()) {
      const std::lock_guard lock(central_);
      if (!each->age_oldest()) break;
    }
  }
}

bool pool_state::tend(pool_clock::time_point now) noexcept {
  const std::lock_guard chores(chores_);
  empty_caches(which_blocks::unused);
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
  for (const thread_caches::hold all(caches_); const auto& each : all) {
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
  held_for_fork_.emplace(caches_);
  central_.lock();
}

void pool_state::unlock_all() noexcept {
  central_.unlock();
  held_for_fork_.reset();
  chores_.unlock();
}

}  // namespace shale::detail
