// The commit protocol (src/format/commit.hpp) as a state machine, explored exhaustively.
//
// Actors: a writer process that may die at any step and be replaced, and readers. The world: the
// kernel writes dirty pages back and evicts clean ones when it likes; a sync may fail, which leaves
// pages clean while their bytes may or may not be on the device; so may the kernel's own writing,
// of which the next sync tells; the power may go at any moment. A superblock is one sector: the
// device holds it whole, but in the cache it is torn while it is being written, and stays so if the
// writer dies there.
//
// A commit is an id with a parent; its generation is its depth, so a generation's number comes
// again if its first bearer was lost. `destroyed` holds the ids whose extents may have been
// overwritten.
//
// Unsafe is: a reader on a destroyed id; a power cut after which no superblock is valid, two claim
// one generation, or the newest is destroyed, was never durable, or does not descend from the last
// commit that was reported to have succeeded.
//
// Each mutation leaves one part of the protocol out, and must be found unsafe: that is what shows
// that the model would notice.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shale {
namespace {

enum class mutation : std::uint8_t {
  none,
  no_rewrite,        // commit.1 syncs, but writes no superblock again
  rewrite_one,       // commit.1 writes only the newest superblock again
  no_rewrite_sync,   // commit.1 does not sync what it wrote again
  no_refusal,        // commit.1 goes on although a reader holds a generation above
  forget_slots,      // commit.2 protects the newest superblock only
  scan_once,         // commit.2 scans pins once per process, not per transaction
  no_data_sync,      // commit.3 does not sync
  newest_slot,       // commit.4 overwrites the newest superblock
  repeat_sync,       // commit.6 repeats a failed sync until it works
  no_second_look,    // commit.7 does not read the slot again
  shrink_under_pins  // an abort truncates the file although a reader holds a generation
};

constexpr int ids_max = 6;        // commits, the first one included
constexpr std::uint8_t none = 7;  // no id: an invalid superblock

using id_set = std::uint8_t;  // bit i: id i; bit 7: invalid

constexpr id_set bit(std::uint8_t id) { return static_cast<id_set>(1u << id); }

enum class writer_at : std::uint8_t {
  idle,
  locked,     // has the lock
  rewritten,  // the adopted superblock is written again, not yet synced
  adopted,    // commit.1 done
  scanned,    // commit.2 done
  data_written,
  data_synced,
  torn,       // in the middle of writing the superblock
  published,  // written, not yet synced
  tidying,    // reported; still has the lock
};

enum class reader_at : std::uint8_t { outside, read_one, read_both, pinned, accepted };

constexpr int readers = 2;

struct world {
  std::array<std::uint8_t, 2> slot;   // id in the cache, or none
  std::array<std::uint8_t, 2> dirty;  // not on its way to the device yet
  std::array<id_set, 2> device;       // what the device may hold there
  std::uint8_t unheard;               // the kernel failed to write, and no sync has told
  std::array<std::uint8_t, ids_max> parent;
  std::uint8_t count;  // ids so far
  id_set durable;      // ids whose data is on the device
  id_set destroyed;
  std::uint8_t reported;  // the last commit that succeeded
  writer_at writer;
  std::uint8_t base;    // what the writer builds on
  std::uint8_t made;    // what it is making
  std::uint8_t target;  // the slot that it writes
  id_set seen_pins;     // generations (not ids) that the scan found
  std::uint8_t scanned_before;
  std::array<reader_at, readers> reader;
  std::array<std::uint8_t, readers> best;

  bool operator==(const world& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};

static_assert(std::has_unique_object_representations_v<world>);  // compared and hashed as bytes

struct world_hash {
  std::size_t operator()(const world& of) const noexcept {
    std::uint64_t hash = 14695981039346656037ull;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&of);
    for (std::size_t i = 0; i < sizeof of; ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
    return hash;
  }
};

int generation(const world& in, std::uint8_t id) {
  int depth = 1;
  for (; in.parent[id] != none; id = in.parent[id]) ++depth;
  return depth;
}

bool descends(const world& in, std::uint8_t id, std::uint8_t from) {
  for (; id != none; id = in.parent[id])
    if (id == from) return true;
  return false;
}

// The slot with the higher generation; none if neither is valid.
std::uint8_t newest(const world& in, std::uint8_t a, std::uint8_t b) {
  if (a == none) return b;
  if (b == none) return a;
  return generation(in, a) > generation(in, b) ? a : b;
}

struct explorer {
  explorer(mutation m, int commits_explored) : mutated(m), commits(commits_explored) {}

  bool without(mutation m) const { return mutated == m; }

  // What is wrong with a state, or nothing.
  const char* problem(const world& in) const {
    for (int r = 0; r < readers; ++r)
      if (in.reader[r] == reader_at::accepted && (in.destroyed & bit(in.best[r])) != 0)
        return "a reader's bytes were overwritten";
    for (std::uint8_t a = 0; a < 8; ++a) {
      if ((in.device[0] & bit(a)) == 0) continue;
      for (std::uint8_t b = 0; b < 8; ++b) {
        if ((in.device[1] & bit(b)) == 0) continue;
        const std::uint8_t top = newest(in, a, b);
        if (top == none) return "power cut: no superblock is valid";
        if (a != none && b != none && generation(in, a) == generation(in, b))
          return "power cut: two superblocks of one generation";
        if ((in.destroyed & bit(top)) != 0) return "power cut: the newest was overwritten";
        if ((in.durable & bit(top)) == 0) return "power cut: the newest was never durable";
        if (!descends(in, top, in.reported)) return "power cut: a reported commit is gone";
      }
    }
    return nullptr;
  }

  template <class Visit>
  void successors(const world& in, Visit&& visit) const {
    kernel(in, visit);
    writer(in, visit);
    for (int r = 0; r < readers; ++r) reader(in, r, visit);
  }

  template <class Visit>
  void kernel(const world& in, Visit&& visit) const {
    for (int i = 0; i < 2; ++i) {
      if (in.dirty[i]) {
        world next = in;  // written back without being asked
        next.dirty[i] = 0;
        next.device[i] = bit(in.slot[i]);
        visit(next, i == 0 ? "writeback 0" : "writeback 1");
        next = in;
        next.dirty[i] = 0;
        next.unheard = 1;
        visit(next, i == 0 ? "writeback 0 FAILS" : "writeback 1 FAILS");
      } else if (in.device[i] != bit(in.slot[i])) {
        for (std::uint8_t id = 0; id < 8; ++id) {  // evicted: read again from the device
          if ((in.device[i] & bit(id)) == 0) continue;
          world next = in;
          next.slot[i] = id;
          next.device[i] = bit(id);
          visit(next, i == 0 ? "evict 0" : "evict 1");
        }
      }
    }
  }

  static void put(world& in, int i, std::uint8_t id) {
    in.slot[i] = id;
    in.dirty[i] = 1;
    in.device[i] |= bit(id);
  }

  static void sync(world& in, bool works) {
    in.unheard = 0;
    for (int i = 0; i < 2; ++i) {
      if (!in.dirty[i]) continue;
      in.dirty[i] = 0;
      if (works) in.device[i] = bit(in.slot[i]);
    }
  }

  // The process that writes is replaced by another one.
  static void replace_writer(world& in) {
    in.writer = writer_at::idle;
    in.base = in.made = none;
    in.target = 0;
    in.seen_pins = 0;
    in.scanned_before = 0;
  }

  // Pinned generations, as locks show them.
  static id_set pins(const world& in) {
    id_set held = 0;
    for (int r = 0; r < readers; ++r)
      if (in.reader[r] == reader_at::pinned || in.reader[r] == reader_at::accepted)
        held |= bit(static_cast<std::uint8_t>(generation(in, in.best[r])));
    return held;
  }

  bool refuses(const world& in, std::uint8_t base) const {
    return !without(mutation::no_refusal) && (pins(in) >> (generation(in, base) + 1)) != 0;
  }

  template <class Visit>
  void writer(const world& in, Visit&& visit) const {
    world next = in;
    const auto go = [&](const char* name) {
      visit(next, name);
      next = in;
    };
    // A sync that works, or one that fails: then the process poisons itself.
    const auto sync_to = [&](writer_at after, const char* works, const char* fails,
                             auto&& if_it_works) {
      if (in.unheard == 0) {
        sync(next, true);
        next.writer = after;
        if_it_works(next);
        go(works);
      }
      sync(next, false);
      if (without(mutation::repeat_sync)) {
        next.writer = after;  // the second call finds nothing dirty, and reports success
        if_it_works(next);
      } else {
        replace_writer(next);
      }
      go(fails);
    };
    const auto nothing_more = [](world&) {};

    if (in.writer != writer_at::idle) {
      replace_writer(next);  // the superblock, if torn, stays torn
      go("KILL");
    }
    const bool gives_up = in.writer >= writer_at::adopted && in.writer < writer_at::torn;
    if (gives_up || in.writer == writer_at::tidying) {
      next.writer = writer_at::idle;
      next.base = next.made = none;
      go("unlock");
      // Truncates what neither superblock needs, unless somebody reads.
      if (pins(in) == 0 || without(mutation::shrink_under_pins)) {
        for (std::uint8_t id = 0; id < in.count; ++id)
          if (id != in.slot[0] && id != in.slot[1] && id != in.base) next.destroyed |= bit(id);
        next.writer = writer_at::idle;
        next.base = next.made = none;
        go("truncate and unlock");
      }
    }
    switch (in.writer) {
      case writer_at::idle:
        if (in.count == commits) break;
        next.writer = writer_at::locked;
        go("lock");
        break;
      case writer_at::locked: {
        const std::uint8_t base = newest(in, in.slot[0], in.slot[1]);
        if (base == none || refuses(in, base)) {
          replace_writer(next);
          go("refuse");
          break;
        }
        next.base = base;
        for (int i = 0; i < 2; ++i)
          if (!without(mutation::no_rewrite) &&
              (in.slot[i] == base || !without(mutation::rewrite_one)))
            put(next, i, in.slot[i]);
        next.writer = writer_at::rewritten;
        go("rewrite");
        break;
      }
      case writer_at::rewritten:
        if (without(mutation::no_rewrite_sync)) {
          next.writer = writer_at::adopted;
          go("no sync 1");
          break;
        }
        sync_to(writer_at::adopted, "sync 1", "sync 1 FAILS", nothing_more);
        break;
      case writer_at::adopted:
        if (refuses(in, in.base)) {
          replace_writer(next);
          go("refuse");
          break;
        }
        if (!(without(mutation::scan_once) && in.scanned_before)) next.seen_pins = pins(in);
        next.scanned_before = 1;
        next.writer = writer_at::scanned;
        go("scan");
        break;
      case writer_at::scanned: {
        // Protected are generations: of the base's line, by number. Whatever else there is belongs
        // to lost commits, which the base's space map knows nothing of.
        id_set kept = bit(in.base);
        for (std::uint8_t id = in.base; id != none; id = in.parent[id]) {
          const int number = generation(in, id);
          if ((in.seen_pins >> number) & 1) kept |= bit(id);
          if (!without(mutation::forget_slots))
            for (const std::uint8_t held : in.slot)
              if (held != none && generation(in, held) == number) kept |= bit(id);
        }
        for (std::uint8_t id = 0; id < in.count; ++id)
          if ((kept & bit(id)) == 0) next.destroyed |= bit(id);
        next.made = in.count;
        next.parent[in.count] = in.base;
        ++next.count;
        next.writer = writer_at::data_written;
        go("write data");
        break;
      }
      case writer_at::data_written:
        if (without(mutation::no_data_sync)) {
          next.writer = writer_at::data_synced;
          go("no sync 3");
          break;
        }
        // A repeated sync that "works" has not made the data durable.
        if (in.unheard == 0) {
          sync(next, true);
          next.writer = writer_at::data_synced;
          next.durable |= bit(in.made);
          go("sync 3");
        }
        sync(next, false);
        if (without(mutation::repeat_sync)) next.writer = writer_at::data_synced;
        else replace_writer(next);
        go("sync 3 FAILS");
        break;
      case writer_at::data_synced: {
        const int top = newest(in, in.slot[0], in.slot[1]) == in.slot[0] ? 0 : 1;
        next.target = static_cast<std::uint8_t>(without(mutation::newest_slot) ? top : 1 - top);
        put(next, next.target, none);
        next.writer = writer_at::torn;
        go("superblock torn");
        break;
      }
      case writer_at::torn:
        put(next, in.target, in.made);
        next.writer = writer_at::published;
        go("superblock");
        break;
      case writer_at::published:
        sync_to(writer_at::tidying, "sync 4", "sync 4 FAILS", [&](world& w) {
          w.reported = in.made;
          w.target = 0;
        });
        break;
      case writer_at::tidying:
        break;
    }
  }

  template <class Visit>
  void reader(const world& in, int r, Visit&& visit) const {
    world next = in;
    const auto go = [&](const char* name) { visit(next, name); };
    switch (in.reader[r]) {
      case reader_at::outside:
        next.best[r] = in.slot[0];
        next.reader[r] = reader_at::read_one;
        return go("reader: slot 0");
      case reader_at::read_one:
        next.best[r] = newest(in, in.best[r], in.slot[1]);
        next.reader[r] = reader_at::read_both;
        if (next.best[r] == none) next.reader[r] = reader_at::outside;
        return go("reader: slot 1");
      case reader_at::read_both:
        next.reader[r] = reader_at::pinned;
        return go("reader: pin");
      case reader_at::pinned:
        if (without(mutation::no_second_look) || in.slot[0] == in.best[r] ||
            in.slot[1] == in.best[r]) {
          next.reader[r] = reader_at::accepted;
        } else {
          next.reader[r] = reader_at::outside;
          next.best[r] = none;
        }
        return go("reader: look again");
      case reader_at::accepted:
        next.reader[r] = reader_at::outside;
        next.best[r] = none;
        return go("reader: close");
    }
  }

  // As file::create leaves it: one superblock, all of it durable.
  static world initial() {
    world start;
    std::memset(static_cast<void*>(&start), 0, sizeof start);
    start.slot = {0, none};
    start.device = {bit(0), bit(none)};
    start.parent.fill(none);
    start.count = 1;
    start.durable = bit(0);
    start.best.fill(none);
    replace_writer(start);
    return start;
  }

  // Returns how it goes wrong, or nothing.
  std::optional<std::string> explore(int reader_count) {
    std::vector<world> found;
    std::vector<std::pair<std::size_t, const char*>> from;  // parent state, step
    std::unordered_map<world, std::size_t, world_hash> seen;
    const auto add = [&](const world& state, std::size_t parent, const char* step) {
      if (seen.emplace(state, found.size()).second) {
        found.push_back(state);
        from.emplace_back(parent, step);
      }
    };
    add(initial(), 0, "start");
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (const char* const what = problem(found[i])) {
        std::string path = what;
        for (std::size_t at = i; at != 0; at = from[at].first)
          path.insert(0, std::string(from[at].second) + "; ");
        return path;
      }
      const world here = found[i];
      kernel(here, [&](const world& w, const char* step) { add(w, i, step); });
      writer(here, [&](const world& w, const char* step) { add(w, i, step); });
      for (int r = 0; r < reader_count; ++r)
        reader(here, r, [&](const world& w, const char* step) { add(w, i, step); });
    }
    states = found.size();
    return std::nullopt;
  }

  mutation mutated;
  int commits;  // the first one included
  std::size_t states = 0;
};

TEST(TwoSlotModel, ProtocolIsSafeWithTwoReaders) {
  explorer whole(mutation::none, 4);
  EXPECT_EQ(whole.explore(2), std::nullopt);
  EXPECT_GT(whole.states, 10'000u);
  RecordProperty("states", static_cast<int>(whole.states));
}

TEST(TwoSlotModel, ProtocolIsSafeThroughManyCommits) {
  explorer whole(mutation::none, 5);
  EXPECT_EQ(whole.explore(1), std::nullopt);
  EXPECT_GT(whole.states, 10'000u);
  RecordProperty("states", static_cast<int>(whole.states));
}

class TwoSlotModelWithout : public testing::TestWithParam<mutation> {};

TEST_P(TwoSlotModelWithout, IsUnsafe) {
  explorer mutated(GetParam(), 5);
  const auto unsafe = mutated.explore(1);
  ASSERT_TRUE(unsafe);
  RecordProperty("path", *unsafe);
}

std::string part_name(const testing::TestParamInfo<mutation>& which) {
  switch (which.param) {
    case mutation::no_rewrite:
      return "Rewrite";
    case mutation::rewrite_one:
      return "RewriteOfBoth";
    case mutation::no_rewrite_sync:
      return "RewriteSync";
    case mutation::no_refusal:
      return "Refusal";
    case mutation::forget_slots:
      return "KeptSlots";
    case mutation::scan_once:
      return "ScanEachTime";
    case mutation::no_data_sync:
      return "DataSync";
    case mutation::newest_slot:
      return "OlderSlot";
    case mutation::repeat_sync:
      return "Poison";
    case mutation::no_second_look:
      return "SecondLook";
    case mutation::shrink_under_pins:
      return "NoShrinkLock";
    case mutation::none:
      break;
  }
  return "Nothing";
}

INSTANTIATE_TEST_SUITE_P(Part, TwoSlotModelWithout,
                         testing::Values(mutation::no_rewrite, mutation::rewrite_one,
                                         mutation::no_rewrite_sync, mutation::no_refusal,
                                         mutation::forget_slots, mutation::scan_once,
                                         mutation::no_data_sync, mutation::newest_slot,
                                         mutation::repeat_sync, mutation::no_second_look,
                                         mutation::shrink_under_pins),
                         part_name);

}  // namespace
}  // namespace shale
