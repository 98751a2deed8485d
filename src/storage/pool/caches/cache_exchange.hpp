// Moves blocks between the cache of a thread and the heaps.
//
// The caller holds the locks of the cache and of the heaps.
#pragma once

#include <cstddef>

#include "storage/pool/caches/thread_cache.hpp"
#include "storage/pool/heap/shared_heaps.hpp"
#include "storage/pool/heap/size_classes.hpp"

namespace shale::detail {

/// Gives back what the cache has too much of, before its thread takes a block for `wanted`: this
/// may free the memory that it needs.
void give_surplus_back(thread_cache& cache, const block_request& wanted,
                       const shared_heaps::hold& heaps) noexcept;

/// After a miss of a class, caches more blocks of that class: more with each miss, as long as they
/// need no new memory.
void keep_blocks_ahead(thread_cache& cache, const block_request& missed,
                       const shared_heaps::hold& heaps) noexcept;

/// Makes a place for the block in a cache that has none for it, or that is full.
void make_room(thread_cache& cache, const block_request& freed,
               const shared_heaps::hold& heaps) noexcept;

/// Gives back the blocks that were not used since the last call of this function.
void give_unused_back(thread_cache& cache, const shared_heaps::hold& heaps) noexcept;
void give_all_back(thread_cache& cache, const shared_heaps::hold& heaps) noexcept;

}  // namespace shale::detail
