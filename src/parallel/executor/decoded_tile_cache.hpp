// Keeps tiles decoded from one call to the next, inside the memory budget of an executor.
//
// A tile is identified by its stored bytes: their container and their place in it, their checksum,
// and how they are decoded. The bytes of one identity never change. So a kept tile stays valid
// whatever is committed or removed, and generations share the tiles that they have in common.
//
// Invariants
//   decoded.1  a tile that is kept, or that a thread loads, is not loaded by another thread, which
//              waits for that load
//   decoded.2  a load that fails leaves nothing behind. Threads that have waited for it load the
//              tile themselves, so each call reports an error of its own
//   decoded.3  the tiles that are kept take at most `capacity_bytes`, and no more than running
//              calls leave of the budget; the least recently used tiles are evicted first. The
//              memory beside a tile's elements counts too, because tiles may be small. Kept tiles
//              lie in the default pool. If that pool has a limit, they take at most an eighth of it
//   decoded.4  when the last user of a container's chunks is gone, its tiles are gone
//   decoded.5  no lock is held while a tile is loaded. A forked child waits for no thread of its
//              parent: it loads the tile itself
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "parallel/executor/memory_tokens.hpp"
#include "shale/tensor.hpp"
#include "storage/system/fork_handlers.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::parallel {

/// A container whose tiles may be kept. All readers of its chunks share one owner.
class tile_owner {
 public:
  tile_owner() noexcept;

  /// Removes its tiles from all executors.
  ~tile_owner();
  tile_owner(const tile_owner&) = delete;
  tile_owner& operator=(const tile_owner&) = delete;

  /// A number that no other owner of this process has or had.
  std::uint64_t number() const noexcept { return number_; }

 private:
  const std::uint64_t number_;
};

/// The identity of a tile: its stored bytes, and how they are decoded.
struct stored_tile {
  std::uint64_t owner = 0;  ///< tile_owner::number
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
  std::uint32_t flags = 0;
  std::string form = {};  ///< dtype, shape and stages, in a form that the owner chooses

  friend bool operator<(const stored_tile& a, const stored_tile& b) noexcept {
    return std::tie(a.owner, a.offset, a.bytes, a.checksum, a.flags, a.form) <
           std::tie(b.owner, b.offset, b.bytes, b.checksum, b.flags, b.form);
  }
};

/// Threads  every member may be called from any thread
class decoded_tile_cache {
 public:
  /// `tokens` are those of the executor; the tiles may take an eighth of them, and an eighth of the
  /// limit that the default pool has at that time.
  explicit decoded_tile_cache(memory_tokens& tokens) noexcept;
  ~decoded_tile_cache();
  decoded_tile_cache(const decoded_tile_cache&) = delete;
  decoded_tile_cache& operator=(const decoded_tile_cache&) = delete;

  /// The memory of a kept tile beside its elements: its identity, its layout, its place among the
  /// others.
  static constexpr std::size_t overhead_bytes = 1024;

  std::size_t capacity_bytes() const noexcept;
  std::size_t held_bytes() const noexcept;

  struct result {
    tensor values;
    bool found = false;  ///< whether the tile was kept, or another thread loaded it
  };

  /// Returns a tile, which nobody may change: one that is kept, or else what `load()` returns,
  /// which is kept if there is room. The bytes of its storage count, and `overhead_bytes`.
  /// Throws   exceptions of `load`, bad_alloc
  template <class Load>
  result get(const stored_tile& wanted, Load&& load) {
    const turn mine = begin(wanted);
    if (mine.values) return {*mine.values, true};
    if (!mine.running) return {load(), false};
    try {
      result made{load(), false};
      finish(wanted, *mine.running, made.values);
      return made;
    } catch (...) {
      give_up(wanted, *mine.running);
      throw;
    }
  }

  /// Gives the memory of all tiles back.
  void clear() noexcept;

 private:
  friend class tile_owner;

  // A load, which its thread and those that wait for it share.
  struct load_state {
    enum class step : int { running, loaded, failed };
    const unsigned process = detail::fork_generation();
    std::atomic<step> current = step::running;
    std::optional<tensor> values = std::nullopt;  // set before `current` becomes loaded

    void end(step outcome) noexcept;
  };

  struct entry {
    std::shared_ptr<load_state> running;  // null once loaded
    std::optional<tensor> values = std::nullopt;
    std::list<const stored_tile*>::iterator age;
  };
  using entries = std::map<stored_tile, entry>;
  using dropped_entries = std::multimap<stored_tile, entry>;  // to be destroyed without the lock

  // The next step of a thread that wants a tile: it takes `values`, or it loads the tile for all
  // threads that wait for `running`. Without both, it loads the tile for itself.
  struct turn {
    std::optional<tensor> values = std::nullopt;
    std::shared_ptr<load_state> running = nullptr;
  };

  turn begin(const stored_tile& wanted);
  std::shared_ptr<load_state> add(const stored_tile& wanted);
  void finish(const stored_tile& wanted, load_state& running, const tensor& values) noexcept;
  void give_up(const stored_tile& wanted, load_state& running) noexcept;
  bool make_room(std::size_t bytes, dropped_entries& dropped) noexcept;
  void drop(entries::iterator at, dropped_entries& dropped) noexcept;
  void drop_owner(std::uint64_t owner, dropped_entries& dropped) noexcept;

  memory_tokens& tokens_;
  const std::size_t share_bytes_;  // of the budget
  mutable detail::fork_safe_mutex mutex_;
  std::size_t held_bytes_ = 0;
  entries entries_;
  std::list<const stored_tile*> ages_;  // least recently used first
  decoded_tile_cache* next_ = nullptr;  // of all in this process; under the lock of the list
};

}  // namespace shale::parallel
