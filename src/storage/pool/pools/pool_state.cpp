#include "storage/pool/pools/pool_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shale/error.hpp"
#include "storage/pool/caches/cache_exchange.hpp"
#include "storage/pool/heap/poison.hpp"
#include "storage/pool/heap/small_block.hpp"
#include "storage/pool/pools/housekeeper.hpp"
#include "storage/pool/pools/own_caches.hpp"
#include "storage/pool/pools/pool_list.hpp"
#include "storage/system/pages.hpp"

namespace shale::detail {

namespace {

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

pool_state::pool_state(const pool_options& options, aged_by ager)
    : id_(next_id()), who_ages_(ager), quota_(options.limit_bytes) {
  join_pools(*this);
}

pool_state::~pool_state() {
  leave_pools(*this);  // after this no ending thread and no housekeeper accesses the pool
  empty_caches(cached_blocks::all);
}

// ---- allocation ---------------------------------------------------------------------------------

void* pool_state::allocate(std::size_t bytes, std::size_t alignment) {
  const block_request wanted = request_for(bytes, alignment);
  void* block = try_allocate(wanted);
  if (block == nullptr) [[unlikely]] {
    trim();
    block = try_allocate(wanted);
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

void* pool_state::try_allocate(const block_request& wanted) noexcept {
  if (wanted.kind == block_kind::small) return allocate_small(wanted);
  if (wanted.kind == block_kind::whole_mapping) return allocate_uncached(wanted);
  thread_cache* const own_cache = cache_of_this_thread(*this, id_);
  if (own_cache == nullptr) return allocate_uncached(wanted);
  {
    const std::lock_guard lock(own_cache->lock);
    if (void* const kept = own_cache->take(wanted)) {
      ++own_cache->hits;
      counts_.count(*own_cache, 1, wanted.bytes);
      return kept;
    }
    if (void* const block = fetch(*own_cache, wanted, memory_wanted::resident)) return block;
  }
  // New memory is touched only if the caches of other threads do not help.
  if (counts_.caches_are_worth_emptying()) empty_caches(cached_blocks::all);
  const std::lock_guard lock(own_cache->lock);
  return fetch(*own_cache, wanted, memory_wanted::any);
}

void* pool_state::allocate_small(const block_request& wanted) noexcept {
  if (!quota_.take(wanted.bytes)) return nullptr;
  void* const block =
      allocate_small_block(wanted.bytes, std::max(wanted.alignment, block_alignment));
  if (block != nullptr) {
    counts_.count_in(wanted.bytes);
    return block;
  }
  quota_.give(wanted.bytes);
  return nullptr;
}

void* pool_state::allocate_uncached(const block_request& wanted) noexcept {
  const shared_heaps::hold heaps(heaps_);
  const auto [found, mapped] =
      heaps.of(wanted.kind).allocate(wanted.bytes, wanted.alignment, pool_clock::now());
  if (found == nullptr) return nullptr;
  if (mapped) counts_.count_miss();
  else counts_.count_hit();
  counts_.count_in(wanted.bytes);
  return found->address;
}

// Gets one block for the caller, and for a size class extra blocks for the cache.
void* pool_state::fetch(thread_cache& cache, const block_request& wanted,
                        memory_wanted memory) noexcept {
  const shared_heaps::hold heaps(heaps_);
  give_surplus_back(cache, wanted, heaps);
  auto* first = heaps.segments().reuse_dirty(wanted.bytes, wanted.alignment);
  bool mapped = false;
  if (first == nullptr && memory == memory_wanted::any) {
    const auto got = heaps.segments().allocate(wanted.bytes, wanted.alignment, pool_clock::now());
    first = got.found;
    mapped = got.mapped;
  }
  if (first == nullptr) return nullptr;
  if (mapped) counts_.count_miss();
  else ++cache.hits;
  keep_blocks_ahead(cache, wanted, heaps);
  counts_.report_cached_bytes(cache);
  counts_.count(cache, 1, wanted.bytes);
  return first->address;
}

// ---- deallocation -------------------------------------------------------------------------------

void pool_state::deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
  const block_request freed = request_for(bytes, alignment);
  if (freed.kind == block_kind::small) {
    free_small_block(address);
    quota_.give(freed.bytes);
    counts_.count_out(freed.bytes);
    return;
  }
  thread_cache* const own_cache =
      freed.kind == block_kind::whole_mapping || freed.bytes > large_bytes_kept
          ? nullptr
          : cache_of_this_thread(*this, id_);
  if (own_cache != nullptr) {
    poison(address, freed.bytes);
    const std::lock_guard lock(own_cache->lock);
    counts_.count(*own_cache, -1, freed.bytes);
    if (!own_cache->has_place(freed) ||
        own_cache->class_block_bytes() + freed.bytes > thread_bytes_max)
      make_room(*own_cache, freed, shared_heaps::hold(heaps_));
    own_cache->keep(address, freed);
    counts_.report_cached_bytes(*own_cache);
  } else {
    counts_.count_out(freed.bytes);
    const shared_heaps::hold heaps(heaps_);
    segment_heap& to = heaps.of(freed.kind);
    to.free(to.find(address), memory_state::dirty, pool_clock::now());
  }
  if (who_ages_ == aged_by::housekeeper) announce_idle_memory();
}

// ---- threads ------------------------------------------------------------------------------------

void pool_state::empty_cache(thread_cache& cache, cached_blocks blocks) noexcept {
  const shared_heaps::hold heaps(heaps_);
  if (blocks == cached_blocks::all) give_all_back(cache, heaps);
  else give_unused_back(cache, heaps);
  counts_.report_cached_bytes(cache);
}

void pool_state::remove_thread(thread_cache& gone) noexcept {
  thread_caches::hold all(caches_);
  empty_cache(gone, cached_blocks::all);
  counts_.take_over(gone);
  all.remove(gone);
}

// The sum of the counts of all threads and the pool, at one moment.
pool_counts::totals pool_state::count_all() const noexcept {
  return counts_.sum(thread_caches::hold(caches_));
}

void pool_state::empty_caches(cached_blocks blocks) noexcept {
  for (const thread_caches::hold all(caches_); const auto& cache : all) empty_cache(*cache, blocks);
}

// ---- giving back --------------------------------------------------------------------------------

std::size_t pool_state::trim() noexcept {
  const std::lock_guard maintenance(maintenance_lock_);
  empty_caches(cached_blocks::all);
  return shared_heaps::hold(heaps_).trim();
}

void pool_state::set_limit_bytes(std::size_t bytes) noexcept {
  quota_.set_limit_bytes(bytes);
  if (bytes != 0 && quota_.held_bytes() > bytes) trim();
}

std::size_t pool_state::reserve(std::size_t bytes) noexcept {
  const std::size_t reserved = quota_.reserve_up_to(bytes);
  if (reserved == bytes) return reserved;
  trim();
  return reserved + quota_.reserve_up_to(bytes - reserved);
}

std::size_t pool_state::allowed_bytes() const noexcept {
  return idle_bytes_allowed(counts_.live_bytes());
}

std::size_t pool_state::idle_bytes() const {
  const std::size_t in_caches = count_all().cached_bytes;
  return shared_heaps::hold(heaps_).dirty_bytes() + in_caches;
}

// Empties the caches of threads, then ages the oldest blocks first, until no more memory is idle
// than allowed. Memory that other threads allocate and free meanwhile is left to the next tick.
void pool_state::lower_idle_bytes(pool_clock::time_point now) noexcept {
  empty_caches(cached_blocks::all);
  const std::size_t idle = idle_bytes();
  const std::size_t allowed = allowed_bytes();
  // Blocks that left the caches just now are younger than the tick.
  if (idle > allowed) heaps_.age_oldest(idle - allowed, std::max(now, pool_clock::now()));
}

bool pool_state::age_idle_memory(pool_clock::time_point now) noexcept {
  const std::lock_guard maintenance(maintenance_lock_);
  empty_caches(cached_blocks::unused);
  heaps_.age(now, ages_);
  if (excess_.lasts(idle_bytes(), allowed_bytes(), now)) lower_idle_bytes(now);
  return count_all().cached_bytes > 0 || shared_heaps::hold(heaps_).is_ageing();
}

// ---- reading ------------------------------------------------------------------------------------

pool_statistics pool_state::statistics() const {
  const auto bytes = [](std::int64_t count) {
    return static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  };
  const pool_counts::totals all = count_all();
  const shared_heaps::hold heaps(heaps_);
  pool_statistics now;
  now.live_bytes = bytes(all.live_bytes);
  now.live_blocks = bytes(all.live_blocks);
  now.peak_live_bytes = std::max(bytes(all.peak_live_bytes), now.live_bytes);
  // A block that another thread is allocating or freeing may be counted on one side only, so the
  // values are clamped.
  now.reserved_bytes = quota_.reserved_bytes();
  const std::size_t held = quota_.held_bytes();
  now.mapped_bytes = std::max(held - std::min(now.reserved_bytes, held), now.live_bytes);
  now.cached_bytes = now.mapped_bytes - now.live_bytes;
  now.idle_bytes = heaps.dirty_bytes() + all.cached_bytes;
  now.largest_free_bytes = heaps.largest_free_bytes();
  now.hits = all.hits;
  now.misses = all.misses;
  now.splits = heaps.segments().splits();
  now.coalesces = heaps.segments().coalesces();
  return now;
}

bool pool_state::all_clear() const noexcept { return count_all().live_bytes == 0; }

void pool_state::reset_peak() noexcept { counts_.reset_peak(thread_caches::hold(caches_)); }

bool pool_state::is_consistent() const { return shared_heaps::hold(heaps_).is_consistent(); }

// ---- fork ---------------------------------------------------------------------------------------

void pool_state::lock_all() noexcept { held_for_fork_.emplace(*this); }

void pool_state::unlock_all() noexcept { held_for_fork_.reset(); }

}  // namespace shale::detail
