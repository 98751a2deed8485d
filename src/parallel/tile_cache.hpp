// Tiles of sources that have been loaded, shared by the threads of one call: views that are shifted
// against the tile grid need neighbours again, which are then not decoded twice.
//
// Invariants
//   cache.1  a tile is loaded by one thread; others that want it wait for that load
//   cache.2  tiles in use are never evicted; the rest, least recently used first, keeps the total
//            within the capacity
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>

#include "shale/executor.hpp"
#include "shale/tile_source.hpp"

namespace shale::parallel {

class tile_cache {
 public:
  tile_cache(std::size_t capacity_bytes, executor& on) noexcept
      : capacity_bytes_(capacity_bytes), executor_(on) {}

  /// The tile, loaded if need be; row-major. Throws what the load throws, to every thread waiting.
  tensor get(const tile_source& source, const dims& tile);

 private:
  struct key {
    const tile_source* source;
    dims tile;
    friend bool operator<(const key& a, const key& b) noexcept {
      if (a.source != b.source) return std::less<>{}(a.source, b.source);
      return std::lexicographical_compare(a.tile.begin(), a.tile.end(), b.tile.begin(),
                                          b.tile.end());
    }
  };
  struct entry {
    tensor values;
    bool loaded = false;
    std::list<key>::iterator age;
  };

  void shrink();

  const std::size_t capacity_bytes_;
  executor& executor_;
  std::mutex mutex_;
  std::condition_variable loaded_;
  std::size_t held_bytes_ = 0;
  std::map<key, entry> entries_;
  std::list<key> ages_;  // least recently used first
};

/// `shape` elements of a source from `start` on, every `step`-th along each axis.
struct stepped_region {
  dims start;
  dims shape;  // no axis is empty
  dims step;   // positive
};

/// The elements of `where` of a source: a view of a cached tile if one holds them all, else
/// gathered into fresh memory of the executor's pool. Tiles that hold none of them are not loaded.
tensor read_region(const tile_source& source, const stepped_region& where, tile_cache& through,
                   executor& on);

}  // namespace shale::parallel
