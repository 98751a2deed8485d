#include "storage/pool/caches/cache_exchange.hpp"

namespace shale::detail {

namespace {

void give_back(void* block, pool_clock::time_point now, const shared_heaps::hold& heaps) noexcept {
  segment_heap& to = heaps.segments();
  to.free(to.find(block), memory_state::dirty, now);
}

void give_half_back(thread_cache& cache, std::size_t size_class,
                    const shared_heaps::hold& heaps) noexcept {
  const auto now = pool_clock::now();
  cache.drop(size_class, (cache.blocks_of(size_class) + 1) / 2,
             [&](void* block) { give_back(block, now, heaps); });
}

void give_large_back(thread_cache& cache, const shared_heaps::hold& heaps) noexcept {
  if (void* const block = cache.drop_large()) give_back(block, pool_clock::now(), heaps);
}

// Gives back blocks of the class with the most kept bytes, until at most `bytes` are kept in all.
void shrink(thread_cache& cache, std::size_t bytes, const shared_heaps::hold& heaps) noexcept {
  while (cache.class_block_bytes() > bytes) give_half_back(cache, cache.fullest_class(), heaps);
}

}  // namespace

void give_surplus_back(thread_cache& cache, const block_request& wanted,
                       const shared_heaps::hold& heaps) noexcept {
  if (wanted.kind == block_kind::large) give_large_back(cache, heaps);
  if (cache.class_block_bytes() > thread_bytes_kept) shrink(cache, thread_bytes_kept, heaps);
}

void keep_blocks_ahead(thread_cache& cache, const block_request& missed,
                       const shared_heaps::hold& heaps) noexcept {
  if (missed.kind != block_kind::of_class) return;
  for (auto ahead = cache.blocks_ahead(missed.size_class); ahead > 0; --ahead) {
    if (cache.class_block_bytes() + missed.bytes > thread_bytes_kept) break;
    auto* const more = heaps.segments().reuse_dirty(missed.bytes, natural_alignment);
    if (more == nullptr) break;
    cache.keep(more->address, missed);
  }
}

void make_room(thread_cache& cache, const block_request& freed,
               const shared_heaps::hold& heaps) noexcept {
  if (freed.kind == block_kind::large) return give_large_back(cache, heaps);
  if (!cache.has_place(freed)) give_half_back(cache, freed.size_class, heaps);
  shrink(cache, thread_bytes_kept, heaps);
}

void give_unused_back(thread_cache& cache, const shared_heaps::hold& heaps) noexcept {
  cache.drop_unused([&, now = pool_clock::now()](void* block) { give_back(block, now, heaps); });
}

void give_all_back(thread_cache& cache, const shared_heaps::hold& heaps) noexcept {
  give_unused_back(cache, heaps);  // begins the next tick for the cache
  give_large_back(cache, heaps);
  shrink(cache, 0, heaps);
}

}  // namespace shale::detail
