// Keeps loaded tiles of sources, for all threads of one call. If a view is shifted against the tile
// grid, several units need one tile; the cache saves decoding it again.
//
// Invariants
//   cache.1  a tile is loaded by one thread; other threads that want it wait for that load
//   cache.2  tiles in use are never evicted; if the total exceeds the capacity, other tiles are
//            evicted, the least recently used first
//   cache.3  after a load has failed, no further load begins: the call has failed, and a load may
//            take long
//   cache.4  tiles of sources that the executor keeps decoded stay here until the call ends, and
//            do not count in the capacity: all tiles that the call loads of such sources together
//            fit in half of what the executor may keep
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <mutex>

#include "parallel/sources/decoded_source.hpp"
#include "shale/executor.hpp"
#include "shale/tile_source.hpp"

namespace shale::parallel {

class tiles_of_call {
 public:
  tiles_of_call(std::size_t capacity_bytes, executor& on) noexcept
      : capacity_bytes_(capacity_bytes), executor_(on) {}

  /// Takes the tiles of a source from `decoded`, its interface (sources_to_keep). Before any `get`.
  void keep_decoded(const tile_source& source, const decoded_source& decoded) {
    decoded_.insert_or_assign(&source, &decoded);
  }

  /// Returns a tile, row-major, and loads it if the cache does not hold it.
  /// Throws   the exception of the first load that failed, of this tile or another, bad_alloc
  /// Threads  any, at any time
  tensor get(const tile_source& source, const dims& tile);

  /// Whether the tile is in the cache, or is being loaded.
  /// Threads  any, at any time
  bool knows(const tile_source& source, const dims& tile);

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
    tensor values = {};
    bool loaded = false;
    bool kept = false;  // also by the executor (cache.4)
    std::list<key>::iterator age;
  };

  using entries = std::map<key, entry>;

  const decoded_source* interface_of(const tile_source& source) const noexcept;
  tensor load(const tile_source& source, const dims& tile) const;
  entries::iterator add(const key& wanted);
  void shrink();

  const std::size_t capacity_bytes_;
  executor& executor_;
  std::map<const tile_source*, const decoded_source*> decoded_;  // of those that are kept decoded
  std::mutex mutex_;
  std::condition_variable loaded_;
  std::exception_ptr failure_;  // of the first load that failed
  std::size_t held_bytes_ = 0;
  entries entries_;
  std::list<key> ages_;  // least recently used first
};

}  // namespace shale::parallel
